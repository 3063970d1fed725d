"""The sandbox of a session: launches commands in the best tier that works."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Literal, NamedTuple

from handrail.protocol.errors import ToolError
from handrail.protocol.results import OVERLAY_TIER
from handrail.sandbox.bubblewrap import Bubblewrap, BubblewrapBackend, find_bubblewrap, inspect_bubblewrap
from handrail.sandbox.diagnosis import (
    Diagnosis,
    Failure,
    Report,
    build_report,
    describe_memory_gap,
    diagnose_bubblewrap_failure,
    diagnose_landlock_failure,
    diagnose_missing_bubblewrap,
    diagnose_platform,
)
from handrail.sandbox.environment import check_text
from handrail.sandbox.launch import Launch
from handrail.sandbox.overlay import pool
from handrail.sandbox.overlay.overlay import NOT_MOUNTED, Overlay
from handrail.sandbox.overlay.pool import SECONDS_TO_BELIEVE, OverlayPool
from handrail.sandbox.probe import extract_mount_error, probe_tier, retry_timeout
from handrail.sandbox.profile import SandboxHost, SandboxProfile
from handrail.sandbox.view import build_base_view
from handrail.workspace.roots import is_inside

_CONFINED = {"NoNewPrivs": "1", "Seccomp": "2"}
_WITHOUT_CAPABILITIES = {**_CONFINED, "CapEff": "0000000000000000", "CapBnd": "0000000000000000"}
_DOCTOR = "`handrail doctor` tells the user more."


class TierChoice(NamedTuple):
    """The best tier that works, with the failures of better ones."""

    tier: int
    program: Bubblewrap | None
    failures: tuple[Failure, ...]

    @property
    def namespace_failure(self) -> str:
        """Why tier 2 is not in use."""
        return next((failure.reason for failure in self.failures if failure.tier == 2), "settings allow no better one")


class CommandSandbox:
    """Starts commands in the best tier up to `most`. Refuses if that is below `least`."""

    def __init__(self, host: SandboxHost, *, most: int = 3, least: int = 0) -> None:
        self._host = host
        self._most = most
        self._least = least
        self._backend: BubblewrapBackend | None = None
        self._overlays = OverlayPool(host)

    @property
    def tier(self) -> int:
        """The tier in use. The first call probes the machine."""
        return self._choose().tier

    def report(self, roots: tuple[str, ...] = (), without: Failure | None = None) -> Report:
        """The report of the tier in use, for commands that may change these roots.

        `without` is a reason against an overlay that the sandbox does not know.
        """
        choice = self._choose()
        if not roots or self._most < OVERLAY_TIER or choice.tier < 2:
            return build_report(*choice)
        obstacle = self._overlays.find_obstacle(roots)
        failure = Failure(tier=OVERLAY_TIER, reason=obstacle.reason, fix=obstacle.fix) if obstacle else without
        if failure is None:
            return build_report(OVERLAY_TIER, choice.program, choice.failures, self._overlays.max_bytes(roots))
        return build_report(choice.tier, choice.program, (failure, *choice.failures))

    def find_overlay_obstacle(self, roots: tuple[str, ...]) -> str | None:
        """Why no overlay can lie over these roots. None: `create_overlay` makes one."""
        obstacle = self._find_overlay_obstacle(roots)
        return obstacle.reason if obstacle else None

    def list_overlay_gaps(self, roots: tuple[str, ...]) -> tuple[str, ...]:
        most = self._overlays.max_bytes(roots)
        return () if most is None else (describe_memory_gap(most),)

    def has_single_user(self, roots: tuple[str, ...]) -> bool:
        """Whether files of other users and groups cannot be changed in an overlay over these roots."""
        return self._overlays.in_user_namespace(roots)

    def shows(self, path: str, roots: tuple[str, ...]) -> bool:
        return any(is_inside(path, root) for root in roots) or build_base_view(self._host, roots).shows(path)

    def create_overlay(self, roots: tuple[str, ...], below: tuple[Overlay, ...] = ()) -> Overlay:
        """A new overlay for one launch, on the overlays `below`, the latest first. OSError if there is no room."""
        return self._overlays.create(roots, below)

    def launch(
        self, profile: SandboxProfile, text: str, overlay: Overlay | None = None, network: int | None = None
    ) -> Launch:
        """A command that is ready to start, under its overlay if it has one.

        `network`: the namespace of the session's network, or NEW_NETWORK. Below tier 2 it is ignored.
        """
        check_text(text)
        choice = self._choose()
        if choice.tier < min(self._least, 2):
            raise _refuse_weak_tier(choice, self._least)
        if self._least >= OVERLAY_TIER and overlay is None and profile.writable and not profile.is_read_only:
            raise _refuse_missing_overlay(self._find_overlay_obstacle(profile.writable))
        if choice.program is not None:
            if self._backend is None or self._backend.program != choice.program:
                self._backend = BubblewrapBackend(choice.program, self._host)
            return self._backend.launch(profile, text, overlay, network)
        if overlay is not None:  # without tier 2 the command would change the files themselves
            raise _refuse_broken_overlay("its sandbox no longer works")
        if profile.proxy:
            raise _refuse_network(choice)
        return _launch_supervised(profile, self._host, text, choice.tier)

    def explain_failure(self, printed: str, overlay: Overlay | None = None) -> ToolError:
        """The error of a launch that did not run its command. The next command probes again."""
        if overlay is not None and NOT_MOUNTED in printed:
            error = extract_mount_error(printed) or "it cannot be mounted"
            self._overlays.note_failure(overlay, error)
            return _refuse_broken_overlay(error.rpartition(": ")[2])  # without paths
        tier = self._choose().tier
        self.forget()
        lines = [line.strip() for line in printed.split("\n") if line.strip()] or ["it ended without an answer"]
        return _refuse(
            f"Commands cannot run now: the sandbox (tier {tier}) could not be made ({lines[-1][:300]}). Nothing was"
            f" run. You cannot repair this: continue with file tools, or end. {_DOCTOR}"
        )

    def forget(self) -> None:
        """Forget the results of probes. The next command probes again."""
        forget_probes()
        pool.forget()

    def close(self) -> None:
        """Wait for the overlays that are being removed."""
        self._overlays.close()

    def _find_overlay_obstacle(self, roots: tuple[str, ...]) -> Diagnosis | None:
        choice = self._choose()
        if self._most < OVERLAY_TIER:
            return Diagnosis(f"settings ask for none: sandbox.tier is {self._most}", None)
        if choice.tier >= 2:
            return self._overlays.find_obstacle(roots)
        reason = f"an overlay needs sandbox tier 2, and here is tier {choice.tier} ({choice.namespace_failure})"
        return Diagnosis(reason, None)

    def _choose(self) -> TierChoice:
        return choose_tier(self._host, self._most)


def _refuse_network(choice: TierChoice) -> ToolError:
    text = f"The network can be opened to a command only in sandbox tier 2, and here is tier {choice.tier}"
    fix = next((failure.fix for failure in choice.failures if failure.tier == 2), None)
    text = f"{text} ({choice.namespace_failure}). Nothing was run. Call without the network, or stop here."
    return _refuse(text, fix, code="UNAVAILABLE")


def _refuse_weak_tier(choice: TierChoice, least: int) -> ToolError:
    better = [failure for failure in choice.failures if failure.tier >= min(least, 2)]
    reasons = "; ".join(f"tier {failure.tier}: {failure.reason}" for failure in better)
    fix = next((failure.fix for failure in choice.failures if failure.fix), None)
    text = f"Commands need at least tier {least}, and the best tier here is {choice.tier}"
    return _refuse(f"{text} ({reasons or 'settings allow no better one'}). Nothing was run.", fix)


def _refuse_missing_overlay(obstacle: Diagnosis | None) -> ToolError:
    text = "Settings ask for sandbox tier 3 (sandbox.least): a command may change files only in an overlay"
    if obstacle is None:
        reason, advice = "a background process has no overlay", "Call it without background and yieldMs."
    else:
        reason, advice = obstacle.reason, "Read-only commands still run, and so do file tools."
    return _refuse(f"{text}, and {reason}. Nothing was run. {advice}", obstacle.fix if obstacle else None)


def _refuse_broken_overlay(error: str) -> ToolError:
    text = f"The overlay for the command could not be mounted ({error})"
    return _refuse(f"{text}. Nothing was run. Call again: it will run without one, or need approval. {_DOCTOR}")


def _refuse(
    text: str, fix: str | None = None, code: Literal["SANDBOX_UNAVAILABLE", "UNAVAILABLE"] = "SANDBOX_UNAVAILABLE"
) -> ToolError:
    return ToolError(code, text + (f" A person can type: {fix}" if fix else ""))


_probe_results: dict[Hashable, tuple[Bubblewrap | str | None, float]] = {}
"""The results of probes, each with the time until it counts."""


def forget_probes() -> None:
    _probe_results.clear()


def choose_tier(host: SandboxHost, most: int) -> TierChoice:
    """The best tier up to `most` that passes its probe. Results of probes are kept, so it takes microseconds."""
    failures: list[Failure] = []
    if most >= 2:
        program = _find_working_bubblewrap(host)
        if isinstance(program, Bubblewrap):
            return TierChoice(2, program, ())
        failures.append(Failure(tier=2, reason=program.reason, fix=program.fix))
    if most >= 1:
        diagnosis = _diagnose_landlock(host)
        if diagnosis is None:
            return TierChoice(1, None, tuple(failures))
        failures.append(Failure(tier=1, reason=diagnosis.reason, fix=diagnosis.fix))
    return TierChoice(0, None, tuple(failures))


def _find_working_bubblewrap(host: SandboxHost) -> Bubblewrap | Diagnosis:
    if sys.platform != "linux":
        return diagnose_platform(sys.platform)
    path = find_bubblewrap(host.environ)
    if path is None:
        return diagnose_missing_bubblewrap()
    found = _probe_once((path, _read_identity(path)), lambda: _probe_bubblewrap(path, host))
    return found if isinstance(found, Bubblewrap) else diagnose_bubblewrap_failure(path, str(found))


def _probe_bubblewrap(path: str, host: SandboxHost) -> Bubblewrap | str:
    """The program with the options that work, or the first fault."""
    try:
        program = retry_timeout(lambda: inspect_bubblewrap(path))
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    # A bwrap under AppArmor, or a set-user-ID one, cannot do it. The seccomp filter refuses the same.
    simpler = program._replace(options=program.options - {"--disable-userns"})
    faults: list[str] = []
    for candidate in dict.fromkeys((program, simpler)):
        fault = probe_tier(partial(_launch_namespaced, candidate), host, expected=_WITHOUT_CAPABILITIES)
        if fault is None:
            return candidate
        faults.append(fault)
    return faults[0]


def _diagnose_landlock(host: SandboxHost) -> Diagnosis | None:
    if sys.platform != "linux":
        return diagnose_platform(sys.platform)
    key = ("landlock", sys.executable, os.geteuid())
    fault = _probe_once(key, lambda: probe_tier(_launch_supervised, host, expected=_CONFINED))
    return diagnose_landlock_failure(fault) if isinstance(fault, str) else None


def _probe_once(key: Hashable, probe: Callable[[], Bubblewrap | str | None]) -> Bubblewrap | str | None:
    """The kept result of a probe. A fault, which is a text, counts only for a while."""
    result = _probe_results.get(key)
    if result is None or time.monotonic() >= result[1]:
        found = probe()
        until = time.monotonic() + SECONDS_TO_BELIEVE if isinstance(found, str) else math.inf
        result = _probe_results[key] = found, until
    return result[0]


def _launch_namespaced(program: Bubblewrap, profile: SandboxProfile, host: SandboxHost, text: str) -> Launch:
    return BubblewrapBackend(program, host).launch(profile, text)


def _launch_supervised(profile: SandboxProfile, host: SandboxHost, text: str, tier: int = 1) -> Launch:
    from handrail.sandbox.landlock import launch_supervised  # noqa: PLC0415  only needed without bubblewrap

    return launch_supervised(profile, host, text, tier)


def _read_identity(path: str) -> tuple[int, ...] | None:
    """Differs if another program takes the place of this one."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, os.geteuid())
