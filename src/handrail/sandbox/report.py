"""What a tier gives and what it does not, in words for people and for results."""

import msgspec

from handrail.protocol.decisions import OVERLAY_TIER
from handrail.sandbox.namespaces.bubblewrap import Bubblewrap


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A better tier that does not work here."""

    tier: int
    reason: str
    fix: str | None
    """The one command that would help; None where none does."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How commands are confined here."""

    tier: int
    means: str
    """What confines them: the program and its version, or the kernel's own."""
    failures: tuple[Failure, ...]
    gaps: tuple[str, ...]
    """What the tier in use does not give."""
    per_process: tuple[str, ...]
    """The limits that hold for each process alone."""
    tree: tuple[str, ...]
    """The limits that hold for a command with everything it has started."""


NAMES = {1: "Landlock and seccomp", 0: "nothing"}

_PER_PROCESS = ("file size", "core dumps")
_TREE = ("time", "output", "memory", "processes")
_UNSIZED = "private folders such as /tmp have no limit of their own: bubblewrap is older than 0.5"


def build_report(
    tier: int, program: Bubblewrap | None, failures: tuple[Failure, ...], held_in_memory: int | None = None
) -> Report:
    """The whole account of a tier; `held_in_memory`: bytes that an overlay has, where it is not on the disk."""
    means = f"bubblewrap {program.version}" if program else NAMES[tier]
    held = () if held_in_memory is None else (describe_memory_overlay(held_in_memory),)
    return Report(
        tier=tier,
        means=f"{means} in an overlay over the workspace" if tier >= OVERLAY_TIER else means,
        failures=failures,
        gaps=(*_gaps(tier, program), *held),
        per_process=_PER_PROCESS,
        tree=_TREE,
    )


def describe_memory_overlay(size: int) -> str:
    """That an overlay has a limit, in words."""
    fits = f"{max(1, size >> 20):,} MB fit in"
    return f"what a command changes is held in memory, and {fits}: the disk of the state folder takes no overlays"


def _gaps(tier: int, program: Bubblewrap | None) -> tuple[str, ...]:
    if program is None:
        from handrail.sandbox.supervision.gaps import list_gaps  # noqa: PLC0415  where tier 2 does not work

        return list_gaps(tier)
    return () if "--size" in program.options else (_UNSIZED,)
