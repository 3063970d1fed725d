"""What a result says of a command that ran on the files themselves: what undo covers, and what it does not."""

import re

from msgspec.structs import replace

from handrail.changes.recorder import RecordedChangeSet
from handrail.changes.snapshots.snapshot import UncoveredPath
from handrail.changes.snapshots.watch import CommandWatchResult
from handrail.protocol.decisions import Decision
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.results import SandboxUsed
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import CommandContext
from handrail.tools.running import NetworkedRun
from handrail.tools.sandbox_words import build_sandbox_used
from handrail.workspace.errors import clip_path

_MAX_NAMED_PATHS = 3
_NEVER = "extended attributes and times of files"
_UNWRITABLE = re.compile(rb"Read-only file system|Device or resource busy|EROFS|EBUSY")


def build_snapshot_sandbox_used(
    context: CommandContext, went: NetworkedRun, commands: CommandEnvironment, watched: CommandWatchResult
) -> SandboxUsed:
    """How it was confined, and what undo does not cover."""
    used = build_sandbox_used(context, went.profile, commands)
    if watched.examined is None:
        return replace(used, undo="none", not_covered=(f"anything, since {watched.why}",))
    sent = (f"what was sent to {', '.join(went.reached)}",) if went.reached else ()
    return replace(used, undo="snapshot", not_covered=(*describe_uncovered(watched.uncovered), _NEVER, *sent))


def describe_uncovered(uncovered: tuple[UncoveredPath, ...]) -> tuple[str, ...]:
    """One for each reason, with the first paths: `ignored by git: node_modules`."""
    reasons: dict[str, list[str]] = {}
    for one in sorted(uncovered, key=lambda one: one.shown):
        reasons.setdefault(one.why, []).append(clip_path(one.shown))
    return tuple(f"{why}: {_listed(paths)}" for why, paths in reasons.items())


def describe_lost_changes(watched: CommandWatchResult, *, judged: bool) -> tuple[str, ...]:
    """What is to be said of what undo does not bring back. `judged`: what it changed was to be judged."""
    if watched.examined is None and judged:
        return (f"Nobody knows what it changed, since {watched.why}: it was neither judged nor taken back.",)
    if not watched.lost:
        return ()
    return (f"Gone, and undo does not bring it back: {_listed([clip_path(path) for path in watched.lost])}.",)


def describe_unwritable_paths(went: NetworkedRun, uncovered: tuple[UncoveredPath, ...]) -> str:
    """What to say to a program that could not write where undo would not cover it."""
    sealed = [clip_path(one.shown) for one in uncovered if one.path in went.profile.read_only_paths]
    printed = went.ran.output.head + went.ran.output.tail + (went.ran.errors.head if went.ran.errors else b"")
    if not sealed or went.ran.exit_code == 0 or not _UNWRITABLE.search(printed):
        return ""
    return f"read-only here, since undo would not cover it and nobody was asked: {_listed(sealed)}"


def build_reverted_error(decision: Decision) -> ToolError:
    """The failure of a command whose changes were undone."""
    details = {"rule": decision.rule, "reason": decision.reason}
    if decision.decision == "confirm" or decision.code == "PERMISSION_DENIED":
        message = (
            f"What it changed needs a person's yes: {decision.reason}. It was taken back. Do not repeat this call."
        )
        return ToolError("PERMISSION_DENIED", message, details=details)
    forbidden = f"Rule {decision.rule} forbids what it changed: {decision.reason}. It was taken back."
    advice = "Do not try another way; say what you need it for."
    return ToolError(decision.code or "POLICY_DENIED", f"{forbidden} {advice}", details=details)


def describe_remaining_change(decision: Decision, made: RecordedChangeSet, error: ToolError | StoreError) -> str:
    """What policy does not let be, and could not be undone."""
    why = error.message if isinstance(error, ToolError) else str(error)
    said = f"It asks for a person's yes ({decision.reason}), and could not be taken back: {why}"
    return f"{said.removesuffix('.')}. A person can type: handrail undo {made.changes.number}"


def _listed(paths: list[str]) -> str:
    more = len(paths) - _MAX_NAMED_PATHS
    return ", ".join(paths) if more <= 0 else f"{', '.join(paths[:_MAX_NAMED_PATHS])} and {more} more"
