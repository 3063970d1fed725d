"""The tier that works on this machine."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Hashable
from typing import NamedTuple

from handrail.sandbox.bubblewrap import Bubblewrap, BubblewrapBackend, find_bubblewrap, inspect_bubblewrap
from handrail.sandbox.diagnosis import (
    Diagnosis,
    Failure,
    diagnose_bubblewrap_failure,
    diagnose_landlock_failure,
    diagnose_missing_bubblewrap,
    diagnose_platform,
)
from handrail.sandbox.launch import Launch
from handrail.sandbox.probe import Start, probe_tier
from handrail.sandbox.profile import SandboxHost, SandboxProfile

SECONDS_TO_BELIEVE = 60.0
"""How long a tier counts as one that does not work: a disk may have been full, or the machine too busy."""
_CONFINED = {"NoNewPrivs": "1", "Seccomp": "2"}
_WITHOUT_CAPABILITIES = {**_CONFINED, "CapEff": "0000000000000000", "CapBnd": "0000000000000000"}


class TierChoice(NamedTuple):
    """The tier in use, and why it is no better one."""

    tier: int
    program: Bubblewrap | None
    failures: tuple[Failure, ...]


class _ProbeResult(NamedTuple):
    wrong: str | None
    until: float


_seen: dict[Hashable, _ProbeResult] = {}
"""What was wrong, or None, by what was tried."""


def choose_tier(host: SandboxHost, most: int) -> TierChoice:
    """The best tier up to `most`."""
    failures: list[Failure] = []
    if most >= 2:
        found = _namespaces(host)
        if isinstance(found, Bubblewrap):
            return TierChoice(2, found, ())
        failures.append(Failure(tier=2, reason=found.reason, fix=found.fix))
    if most >= 1:
        remedy = _landlock(host)
        if remedy is None:
            return TierChoice(1, None, tuple(failures))
        failures.append(Failure(tier=1, reason=remedy.reason, fix=remedy.fix))
    return TierChoice(0, None, tuple(failures))


def forget() -> None:
    """Lets go of what was found out: the machine has changed."""
    _seen.clear()


def read_identity(path: str) -> tuple[int, ...] | None:
    """Tells a program from another that has taken its place."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, os.geteuid())


def _namespaces(host: SandboxHost) -> Bubblewrap | Diagnosis:
    if sys.platform != "linux":
        return diagnose_platform(sys.platform)
    path = find_bubblewrap(host.environ)
    if path is None:
        return diagnose_missing_bubblewrap()
    try:
        program = inspect_bubblewrap(path)
    except (OSError, subprocess.SubprocessError) as error:
        return diagnose_bubblewrap_failure(path, str(error))
    # Guarded by AppArmor, or set-user-ID, it cannot do this; the filter of system calls refuses the same.
    simpler = program._replace(options=program.options - {"--disable-userns"})
    wrong = ""
    for candidate in dict.fromkeys((program, simpler)):
        found = _tried(candidate, host)
        if found is None:
            return candidate
        wrong = wrong or found
    return diagnose_bubblewrap_failure(path, wrong)


def _tried(program: Bubblewrap, host: SandboxHost) -> str | None:
    key = (program, read_identity(program.path))
    return _found(key, lambda: probe_tier(_in_namespaces(program), host, expected=_WITHOUT_CAPABILITIES))


def _landlock(host: SandboxHost) -> Diagnosis | None:
    if sys.platform != "linux":
        return diagnose_platform(sys.platform)
    key = ("landlock", sys.executable, os.geteuid())
    wrong = _found(key, lambda: probe_tier(_supervised, host, expected=_CONFINED))
    return None if wrong is None else diagnose_landlock_failure(wrong)


def _found(key: Hashable, find: Callable[[], str | None]) -> str | None:
    seen = _seen.get(key)
    if seen is None or time.monotonic() >= seen.until:
        wrong = find()
        seen = _seen[key] = _ProbeResult(wrong, math.inf if wrong is None else time.monotonic() + SECONDS_TO_BELIEVE)
    return seen.wrong


def _in_namespaces(program: Bubblewrap) -> Start:
    return lambda profile, host, text: BubblewrapBackend(program, host).launch(profile, text)


def _supervised(profile: SandboxProfile, host: SandboxHost, text: str) -> Launch:
    from handrail.sandbox.landlock import launch_supervised  # noqa: PLC0415  where tier 2 does not work

    return launch_supervised(profile, host, text, 1)
