"""Picks the tier of the sandbox, and launches commands in it."""

import math
import time
from threading import Lock

from handrail.protocol.decisions import OVERLAY_TIER
from handrail.protocol.errors import ToolError
from handrail.sandbox import tiers
from handrail.sandbox.bubblewrap import BubblewrapBackend
from handrail.sandbox.diagnosis import Diagnosis, Failure, Report, build_report, describe_memory_overlay
from handrail.sandbox.environment import check_text
from handrail.sandbox.launch import Launch
from handrail.sandbox.mounts import is_within
from handrail.sandbox.overlay import pool
from handrail.sandbox.overlay.overlay import NOT_MOUNTED, Overlay
from handrail.sandbox.overlay.pool import OverlayPool
from handrail.sandbox.probe import extract_mount_error
from handrail.sandbox.profile import SandboxHost, SandboxProfile
from handrail.sandbox.tiers import TierChoice, choose_tier, read_identity
from handrail.sandbox.view import build_base_view

# § [sandbox.refusals] Why a command is not run for want of a sandbox, in words for the model and for people.

_NOT_YOURS = "Nothing was run. It is not your fault, and not yours to mend: go on with file tools, or end."
_DOCTOR = "`handrail doctor` tells the person more."


def describe_no_network(found: TierChoice) -> str:
    """Of a command that is to reach a host, in a tier that can open none."""
    failure = next((failure for failure in found.failures if failure.tier == 2), None)
    why = failure.reason if failure else "settings allow no better one"
    text = f"The network can be opened to a command only in sandbox tier 2, and here is tier {found.tier} ({why})"
    return f"{text}. Nothing was run. Call without the network, or end." + _typed(failure.fix if failure else None)


def describe_weak_tier(found: TierChoice, least: int) -> str:
    """Where settings ask for more than there is."""
    above = [failure for failure in found.failures if failure.tier >= min(least, 2)]
    reasons = "; ".join(f"tier {failure.tier}: {failure.reason}" for failure in above)
    fix = next((failure.fix for failure in found.failures if failure.fix), None)
    text = f"Commands must be confined by tier {least} at least, and here the best is tier {found.tier}"
    return f"{text} ({reasons or 'settings allow no better one'}). Nothing was run.{_typed(fix)}"


def describe_missing_overlay(why: Diagnosis | None) -> str:
    """Where settings ask for an overlay, and a command that may change files gets none."""
    text = "Settings ask for sandbox tier 3 (sandbox.least): what a command changes must go into an overlay"
    if why is None:
        reason, advice = "one that goes on in the background gets none", "Call it without background and yieldMs."
    else:
        reason, advice = why.reason, "Commands that only look still run, and so do file tools."
    return f"{text}, and {reason}. Nothing was run. {advice}{_typed(why.fix if why else None)}"


def describe_overlay_failure(said: str) -> str:
    """Where an overlay was believed to work, and could not be put over the workspace."""
    text = f"The overlay for what the command changes could not be put over the workspace ({said})"
    return f"{text}. Nothing was run. Call again: it will run without one, or be asked about. {_DOCTOR}"


def describe_sandbox_failure(tier: int, printed: str) -> str:
    """Where a sandbox was believed to work, and could not be made."""
    said = next((line for line in reversed(printed.split("\n")) if line.strip()), "it ended without a word")
    text = f"Commands cannot run now: the sandbox (tier {tier}) could not be made ({said.strip()[:300]})."
    return f"{text} {_NOT_YOURS} {_DOCTOR}"


def _typed(fix: str | None) -> str:
    return f" A person can type: {fix}" if fix else ""


# § [sandbox.sandbox] Confines commands as well as this machine can, and says how well that is.


class CommandSandbox:
    """Starts commands in the best tier that works, up to `most`; refuses where that is below `least`."""

    def __init__(self, host: SandboxHost, *, most: int = 3, least: int = 0) -> None:
        self._host = host
        self._most = most
        self._least = least
        self._lock = Lock()
        self._choice: TierChoice | None = None
        self._preparing: BubblewrapBackend | None = None
        self._identity: tuple[int, ...] | None = None
        self._until = 0.0
        self._layers = OverlayPool(host)

    @property
    def tier(self) -> int:
        """The tier in use; found out by doing the first time."""
        return self._chosen().tier

    def report(self, roots: tuple[str, ...] = (), without: Failure | None = None) -> Report:
        """What the tier in use gives, what it does not, and why it is no better one; of commands that may change these
        roots, where there are any. `without`: why they have no overlay for what lies in them, which nobody looks at
        here."""
        found = self._chosen()
        why = self._why_no_layer(roots) if roots and self._most >= OVERLAY_TIER else None
        if not roots or self._most < OVERLAY_TIER or found.tier < 2:
            return build_report(found.tier, found.program, found.failures)
        failure = Failure(tier=OVERLAY_TIER, reason=why.reason, fix=why.fix) if why is not None else without
        if failure is None:
            return build_report(OVERLAY_TIER, found.program, found.failures, self._layers.max_bytes(roots))
        return build_report(found.tier, found.program, (failure, *found.failures))

    def find_overlay_obstacle(self, roots: tuple[str, ...]) -> str | None:
        """Why no overlay can lie over these roots, in words; None where one can: then `new_layer` makes it."""
        why = self._why_no_layer(roots)
        return why.reason if why else None

    def list_overlay_gaps(self, roots: tuple[str, ...]) -> tuple[str, ...]:
        """What an overlay over these roots does not give, in words."""
        most = self._layers.max_bytes(roots)
        return () if most is None else (describe_memory_overlay(most),)

    def has_single_user(self, roots: tuple[str, ...]) -> bool:
        """Whether files of other users and groups cannot be changed under an overlay over these roots."""
        return self._layers.in_user_namespace(roots)

    def shows(self, path: str, roots: tuple[str, ...]) -> bool:
        """Whether a command with these roots sees what lies there."""
        return any(is_within(path, root) for root in roots) or build_base_view(self._host, roots).shows(path)

    def create_overlay(self, roots: tuple[str, ...], below: tuple[Overlay, ...] = ()) -> Overlay:
        """A new overlay over roots; `below`: overlays that it lies on, the latest first. It is for one launch. OSError
        if there is no room for it."""
        return self._layers.new(roots, below)

    def launch(self, profile: SandboxProfile, text: str, overlay: Overlay | None = None) -> Launch:
        """A command that is ready to be started, under its overlay if it has one. ToolError where it cannot be confined
        as it must be."""
        check_text(text)
        found = self._chosen()
        if found.tier < min(self._least, 2):
            raise ToolError("SANDBOX_UNAVAILABLE", describe_weak_tier(found, self._least))
        if self._least >= OVERLAY_TIER and overlay is None and profile.writable and not profile.is_read_only:
            why = self._why_no_layer(profile.writable)
            raise ToolError("SANDBOX_UNAVAILABLE", describe_missing_overlay(why))
        if self._preparing is not None:
            return self._preparing.launch(profile, text, overlay)
        if overlay is not None:  # it would run, and change the files themselves
            raise ToolError(
                "SANDBOX_UNAVAILABLE", describe_overlay_failure("the sandbox around it does not work any more")
            )
        if profile.proxy:
            raise ToolError("UNAVAILABLE", describe_no_network(found))
        from handrail.sandbox.landlock import launch_supervised  # noqa: PLC0415  where tier 2 does not work

        return launch_supervised(profile, self._host, text, found.tier)

    def failed(self, printed: str, overlay: Overlay | None = None) -> ToolError:
        """What to say of a launch that did not come to run its command; what was found out is forgotten, and that an
        overlay could not be mounted is remembered."""
        if overlay is not None and NOT_MOUNTED in printed:
            said = extract_mount_error(printed) or "it cannot be mounted"
            self._layers.failed(overlay, said)
            return ToolError("SANDBOX_UNAVAILABLE", describe_overlay_failure(said.rpartition(": ")[2]))  # without paths
        tier = self._chosen().tier
        self.forget()
        return ToolError("SANDBOX_UNAVAILABLE", describe_sandbox_failure(tier, printed))

    def forget(self) -> None:
        """Lets go of what was found out about this machine; the next command finds out anew."""
        tiers.forget()
        pool.forget()
        self._choice = None

    def close(self) -> None:
        """Waits until overlays that were thrown away are gone; can be repeated, and new ones can be made."""
        self._layers.close()

    def _why_no_layer(self, roots: tuple[str, ...]) -> Diagnosis | None:
        found = self._chosen()
        if self._most < OVERLAY_TIER:
            return Diagnosis(f"settings ask for none: sandbox.tier is {self._most}", None)
        if found.tier >= 2:
            return self._layers.find_obstacle(roots)
        failure = next((failure for failure in found.failures if failure.tier == 2), None)
        why = failure.reason if failure else "settings allow no better one"
        return Diagnosis(f"an overlay needs sandbox tier 2, and here is tier {found.tier} ({why})", None)

    def _chosen(self) -> TierChoice:
        found = self._choice
        if found is None or time.monotonic() >= self._until or self._is_another(found):
            with self._lock:
                found = self._choose()
        return found

    def _is_another(self, found: TierChoice) -> bool:
        return found.program is not None and read_identity(found.program.path) != self._identity

    def _choose(self) -> TierChoice:
        found = choose_tier(self._host, self._most)
        self._until = time.monotonic() + tiers.SECONDS_TO_BELIEVE if found.failures else math.inf
        self._identity = read_identity(found.program.path) if found.program else None
        self._preparing = BubblewrapBackend(found.program, self._host) if found.program else None
        self._choice = found
        return found
