"""What a result says of a command that ran on the files themselves: what undo covers, and what it does not."""

import re

from msgspec.structs import replace

from handrail.changes.recorder import Recorded
from handrail.changes.snapshots.snapshot import Uncovered
from handrail.changes.snapshots.watch import Watched
from handrail.protocol.decision import Decision
from handrail.protocol.error import StoreError, ToolError
from handrail.protocol.result import SandboxUsed
from handrail.tools.commands import Commands
from handrail.tools.contract import CommandContext
from handrail.tools.running import Went
from handrail.tools.sandbox_words import sandbox_of
from handrail.workspace.errors import clipped

_NAMED = 3
_NEVER = "extended attributes and times of files"
_UNWRITABLE = re.compile(rb"Read-only file system|Device or resource busy|EROFS|EBUSY")


def snapshot_sandbox_of(context: CommandContext, went: Went, commands: Commands, watched: Watched) -> SandboxUsed:
    """How it was confined, and what undo does not cover."""
    used = sandbox_of(context, went.confinement, commands)
    if watched.examined is None:
        return replace(used, undo="none", not_covered=(f"anything, since {watched.why}",))
    sent = (f"what was sent to {', '.join(went.reached)}",) if went.reached else ()
    return replace(used, undo="snapshot", not_covered=(*not_covered(watched.uncovered), _NEVER, *sent))


def not_covered(uncovered: tuple[Uncovered, ...]) -> tuple[str, ...]:
    """One for each reason, with the first paths: `ignored by git: node_modules`."""
    reasons: dict[str, list[str]] = {}
    for one in sorted(uncovered, key=lambda one: one.shown):
        reasons.setdefault(one.why, []).append(clipped(one.shown))
    return tuple(f"{why}: {_listed(paths)}" for why, paths in reasons.items())


def lost_words(watched: Watched, *, judged: bool) -> tuple[str, ...]:
    """What is to be said of what undo does not bring back. `judged`: what it changed was to be judged."""
    if watched.examined is None and judged:
        return (f"Nobody knows what it changed, since {watched.why}: it was neither judged nor taken back.",)
    if not watched.lost:
        return ()
    return (f"Gone, and undo does not bring it back: {_listed([clipped(path) for path in watched.lost])}.",)


def unwritable_line(went: Went, uncovered: tuple[Uncovered, ...]) -> str:
    """What to say to a program that could not write where undo would not cover it."""
    sealed = [clipped(one.shown) for one in uncovered if one.path in went.confinement.sealed]
    printed = went.ran.output.head + went.ran.output.tail + (went.ran.errors.head if went.ran.errors else b"")
    if not sealed or went.ran.exit_code == 0 or not _UNWRITABLE.search(printed):
        return ""
    return f"read-only here, since undo would not cover it and nobody was asked: {_listed(sealed)}"


def refused(decision: Decision) -> ToolError:
    """The failure of a command whose changes were taken back."""
    details = {"rule": decision.rule, "reason": decision.reason}
    if decision.decision == "confirm" or decision.code == "PERMISSION_DENIED":
        message = (
            f"What it changed needs a person's yes: {decision.reason}. It was taken back. Do not repeat this call."
        )
        return ToolError("PERMISSION_DENIED", message, details=details)
    forbidden = f"Rule {decision.rule} forbids what it changed: {decision.reason}. It was taken back."
    advice = "Do not try another way; say what you need it for."
    return ToolError(decision.code or "POLICY_DENIED", f"{forbidden} {advice}", details=details)


def stays_words(decision: Decision, made: Recorded, error: ToolError | StoreError) -> str:
    """What policy does not let be, and could not be taken back."""
    why = error.message if isinstance(error, ToolError) else str(error)
    said = f"It asks for a person's yes ({decision.reason}), and could not be taken back: {why}"
    return f"{said.removesuffix('.')}. A person can type: handrail undo {made.changes.number}"


def _listed(paths: list[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths) if more <= 0 else f"{', '.join(paths[:_NAMED])} and {more} more"
