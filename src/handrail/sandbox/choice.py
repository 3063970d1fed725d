"""Which tier is the best that works here: found out by doing, once in a process; what does not work, now and then."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Hashable
from typing import NamedTuple

from handrail.sandbox.confinement import Confinement
from handrail.sandbox.host import Host
from handrail.sandbox.launch import Launch
from handrail.sandbox.namespaces.bubblewrap import Bubblewrap, bubblewrap_at, find_bubblewrap
from handrail.sandbox.namespaces.preparing import Preparing
from handrail.sandbox.probing.probe import Start, surprise
from handrail.sandbox.probing.remedies import Remedy, bubblewrap_fails, no_bubblewrap, no_landlock, not_linux
from handrail.sandbox.report import Failure

SECONDS_TO_BELIEVE = 60.0
"""How long a tier counts as one that does not work: a disk may have been full, or the machine too busy."""
_CONFINED = {"NoNewPrivs": "1", "Seccomp": "2"}
_WITHOUT_CAPABILITIES = {**_CONFINED, "CapEff": "0000000000000000", "CapBnd": "0000000000000000"}


class Choice(NamedTuple):
    """The tier in use, and why it is no better one."""

    tier: int
    program: Bubblewrap | None
    failures: tuple[Failure, ...]


class _Seen(NamedTuple):
    wrong: str | None
    until: float


_seen: dict[Hashable, _Seen] = {}
"""What was wrong, or None, by what was tried."""


def choose(host: Host, most: int) -> Choice:
    """The best tier up to `most`."""
    failures: list[Failure] = []
    if most >= 2:
        found = _namespaces(host)
        if isinstance(found, Bubblewrap):
            return Choice(2, found, ())
        failures.append(Failure(tier=2, reason=found.reason, fix=found.fix))
    if most >= 1:
        remedy = _landlock(host)
        if remedy is None:
            return Choice(1, None, tuple(failures))
        failures.append(Failure(tier=1, reason=remedy.reason, fix=remedy.fix))
    return Choice(0, None, tuple(failures))


def forget() -> None:
    """Lets go of what was found out: the machine has changed."""
    _seen.clear()


def identity(path: str) -> tuple[int, ...] | None:
    """Tells a program from another that has taken its place."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, os.geteuid())


def _namespaces(host: Host) -> Bubblewrap | Remedy:
    if sys.platform != "linux":
        return not_linux(sys.platform)
    path = find_bubblewrap(host.environ)
    if path is None:
        return no_bubblewrap()
    try:
        program = bubblewrap_at(path)
    except (OSError, subprocess.SubprocessError) as error:
        return bubblewrap_fails(path, str(error))
    # Guarded by AppArmor, or set-user-ID, it cannot do this; the filter of system calls refuses the same.
    simpler = program._replace(options=program.options - {"--disable-userns"})
    wrong = ""
    for candidate in dict.fromkeys((program, simpler)):
        found = _tried(candidate, host)
        if found is None:
            return candidate
        wrong = wrong or found
    return bubblewrap_fails(path, wrong)


def _tried(program: Bubblewrap, host: Host) -> str | None:
    key = (program, identity(program.path))
    return _found(key, lambda: surprise(_in_namespaces(program), host, expected=_WITHOUT_CAPABILITIES))


def _landlock(host: Host) -> Remedy | None:
    if sys.platform != "linux":
        return not_linux(sys.platform)
    key = ("landlock", sys.executable, os.geteuid())
    wrong = _found(key, lambda: surprise(_supervised, host, expected=_CONFINED))
    return None if wrong is None else no_landlock(wrong)


def _found(key: Hashable, find: Callable[[], str | None]) -> str | None:
    seen = _seen.get(key)
    if seen is None or time.monotonic() >= seen.until:
        wrong = find()
        seen = _seen[key] = _Seen(wrong, math.inf if wrong is None else time.monotonic() + SECONDS_TO_BELIEVE)
    return seen.wrong


def _in_namespaces(program: Bubblewrap) -> Start:
    return lambda confinement, host, text: Preparing(program, host).launch(confinement, text)


def _supervised(confinement: Confinement, host: Host, text: str) -> Launch:
    from handrail.sandbox.supervision.launching import launch_supervised  # noqa: PLC0415  where tier 2 does not work

    return launch_supervised(confinement, host, text, 1)
