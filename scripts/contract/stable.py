"""Puts placeholders where a run differs from the next: ids, times, durations, numbers of processes."""

import re
from typing import Any

TIME = "2026-01-01T00:00:00Z"
DURATION = 1.5
PROCESS = 4711

_ID = re.compile(r"\b(s|m|call|batch|ask)(?:_[0-9a-f]{32}|-[0-9a-f]+-[0-9a-f]{16})\b")
_PROCESS = re.compile(r"\b(p)-[a-z2-7]{20}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")


class Placeholders:
    """Ids are numbered in the order in which they turn up: `call_1`, `call_2`."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def put(self, value: Any, key: str = "") -> Any:
        """The value with placeholders."""
        if isinstance(value, dict):
            return {name: self.put(item, name) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if isinstance(value, list):
            return [self.put(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, str):
            return _TIME.sub(TIME, _PROCESS.sub(self._name, _ID.sub(self._name, value)))
        if key == "pid" and value is not None:
            return PROCESS
        return DURATION if key in {"duration_ms", "durationMs", "policy_ms"} else value

    def _name(self, match: re.Match[str]) -> str:
        if match[0] not in self._names:
            number = self._counts[match[1]] = self._counts.get(match[1], 0) + 1
            self._names[match[0]] = f"{match[1]}_{number}"
        return self._names[match[0]]
