"""The world outside the sandbox, as an attack finds it and as it is to be found afterwards."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from tests.escape.outside.files import SECRET, Files
from tests.escape.outside.listeners import Listeners
from tests.escape.outside.machine import Machine
from tests.escape.outside.processes import Processes
from tests.escape.outside.shared_objects import SharedObjects

__all__ = ["SECRET", "Outside"]


class _Part(Protocol):
    def build(self) -> None: ...
    def constants(self) -> dict[str, object]: ...
    def fingerprint(self) -> dict[str, object]: ...
    def close(self) -> None: ...


class Outside:
    """Everything that an attack could touch, read or reach; it is put back where one did."""

    def __init__(self, place: Path) -> None:
        root = os.geteuid() == 0
        self.name = place.name
        self.files = Files(place, self.name, root=root)
        self._parts: dict[str, _Part] = {
            "listeners": Listeners(place, self.name, root=root),
            "processes": Processes(place),
            "objects": SharedObjects(self.name),
            "machine": Machine(place),
        }

    def constants(self) -> dict[str, object]:
        """What attacks know: names, numbers and places; never a secret."""
        known = self.files.constants()
        for part in self._parts.values():
            known |= part.constants()
        return known

    def fingerprint(self) -> dict[str, dict[str, object]]:
        return {"files": self.files.fingerprint()} | {name: one.fingerprint() for name, one in self._parts.items()}

    def put_back(self, before: Mapping[str, object], after: Mapping[str, object]) -> bool:
        """Makes anew the parts that are not as they were; whether there was one."""
        changed = [name for name in before if before[name] != after[name]]
        if "files" in changed or not self.files.complete():
            self.files.build()
            changed.append("listeners")
        for name in self._parts:
            if name in changed:
                self._parts[name].build()
        return bool(changed)

    def close(self) -> None:
        ends: list[Callable[[], None]] = [part.close for part in self._parts.values()]
        for end in (*ends, self.files.clear):
            end()


def differences(before: Mapping[str, Mapping[str, object]], after: Mapping[str, Mapping[str, object]]) -> list[str]:
    """What is not as it was, one line each."""
    found: list[str] = []
    for part, old in before.items():
        new = after[part]
        names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
        found += [f"{name}: {str(old.get(name))[:160]} -> {str(new.get(name))[:160]}" for name in names]
    return found
