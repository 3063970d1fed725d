"""Previews a call for its permission request."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.model import OverlayChanges
from handrail.changes.overlay.previews import load_preview
from handrail.protocol.decisions import CommandFact, Decision, DecisionPart, Mode
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import ASIDE
from handrail.runtime.decide import build_context, judge_call_changes
from handrail.runtime.session import PendingCall, Session
from handrail.tools.file_state import SimulatedFiles
from handrail.tools.file_tool import FileTool
from handrail.tools.tool import CommandContext

# § [runtime.trials] Commands are tried before somebody is asked about them: whether that can be, and what asks of
# § what came of it.

_REFUSALS = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE", "CANCELLED"})
"""Errors of what the command did in its preview, not of the preview itself: nobody is asked then."""
_CHANGED_FIRST = "an earlier call of this batch changes files first"
_MAX_SUBJECT_CHARS = 80


def build_preview(
    session: Session,
    pending: PendingCall,
    earlier: Sequence[PendingCall] = (),
) -> Preview | None:
    """What a person is shown before they answer. If the call fails in its preview, that is the call's failure. If no
    preview could be made, the request says so. `earlier`: the calls before it in its batch."""
    if pending.facts.command is None:
        return _shown(session, pending)
    reason = _why_not(session, pending, pending.facts.command)
    if reason is not None:
        return build_missing_preview(reason)
    changing = [one for one in earlier if can_change_files(one)]
    if not changing:
        return _tried(session, pending, ())

    below = simulate_calls(session, changing)
    return build_missing_preview(_CHANGED_FIRST) if below is None else _tried(session, pending, tuple(below))


def find_preview_obstacle(command: CommandFact, *, mode: Mode, tries: bool) -> str | None:
    """Why a command is not tried, in words, as far as that does not depend on the machine; None where it may be."""
    if not tries:
        return "the setting preview is never"
    if mode == "plan":
        return "plan mode tries nothing"
    if command.background:
        return "it goes on after its call"
    if command.yields:
        return "it may go on after its call (yieldMs)"
    return None


def build_missing_preview(reason: str) -> Preview:
    """What is shown in the place of a preview."""
    return Preview(kind="none", text=reason)


def _why_not(session: Session, pending: PendingCall, command: CommandFact) -> str | None:
    rules = pending.rules
    mode = session.rules.mode if rules is None else rules.mode
    reason = find_preview_obstacle(command, mode=mode, tries=session.preview_enabled)
    if reason is None and command.hosts:
        reason = f"needs the network ({_what_reaches(command, pending.decision)})"
    if reason is None and not command.has_overlay:
        why = session.commands.why_no_layer(session.workspace.roots)
        reason = f"no overlay here: {why or 'the sandbox has none'}"
    return reason


def can_change_files(pending: PendingCall) -> bool:
    """Whether a call that did not run yet may change files."""
    if pending.error is not None or ASIDE.issuperset(pending.tool.spec.side_effects):
        return False
    if pending.request is not None and "once" not in pending.request.answers:
        return False  # its preview was stopped, so nothing of it is committed
    if pending.answer is not None and pending.answer.kind in {"deny", "output"}:
        return False
    command = pending.facts.command
    if command is None:
        return pending.facts.process is None
    from handrail.policy.parse import parse_fact  # noqa: PLC0415  tables that only commands need

    return not parse_fact(command).is_read_only


def _what_reaches(command: CommandFact, decision: Decision) -> str:
    """The part of the command that needs the network, as far as one can tell; else the hosts."""
    from handrail.policy.network.needs import NetworkNeeds, find_network_needs  # noqa: PLC0415  few commands need one
    from handrail.policy.parse import parse_command  # noqa: PLC0415  as above

    for part in decision.parts or (decision,):
        needs = find_network_needs(parse_command(part.subject, command.cwd))
        if needs != NetworkNeeds():
            return part.subject if len(part.subject) <= _MAX_SUBJECT_CHARS else f"{part.subject[:_MAX_SUBJECT_CHARS]}…"
    return ", ".join(command.hosts[:3])


def _tried(session: Session, pending: PendingCall, below: "tuple[SimulatedChange, ...]") -> Preview:
    try:
        preview = _shown(session, pending, below)
    except ToolError as error:
        if error.code in _REFUSALS or "limits" in error.named_details:
            raise
        return build_missing_preview(f"it could not be tried: {error.message}")
    except (OSError, StoreError) as error:  # no room for an overlay, or for what came of it
        return build_missing_preview(f"it could not be tried: {error}")
    if preview is None:
        return build_missing_preview("nothing tries it")
    if preview.tried is not None:
        pending.preview_id = preview.tried.sealed
        preview = replace(preview, tried=replace(preview.tried, on=tuple(one.name for one in below)))
    if session.is_cancelled(pending.call.tool_call_id):
        raise ToolError("CANCELLED", "The call was cancelled. Nothing was kept.")
    return preview


def judge_preview(session: Session, pending: PendingCall) -> tuple[DecisionPart, ...]:
    """What asks of what the preview changed, whatever the command is. ToolError if no approval can allow it: then
    nobody is asked. All of it is judged, however much of it is shown."""
    if pending.preview_id is None:
        return ()
    from handrail.changes.overlay.changes import read_preview_configs  # noqa: PLC0415  few commands are tried
    from handrail.changes.overlay.previews import load_preview  # noqa: PLC0415

    examined = load_preview(session.recorder.history, pending.preview_id).examined
    configs = read_preview_configs(session.workspace, session.recorder.history, examined)
    decision = judge_call_changes(session, pending, examined.changes, configs)
    if decision.decision == "allow":
        return ()
    if decision.decision == "deny":
        message = f"Rule {decision.rule} forbids what it would change: {decision.reason}. It was dropped."
        details = {"rule": decision.rule, "reason": decision.reason}
        advice = "Do not try another way; say what you need it for."
        raise ToolError(decision.code or "POLICY_DENIED", f"{message} {advice}", details=details)
    pending.outcome_decision = None  # the person is asked about the command, and sees this beside it
    found = decision.parts or (
        DecisionPart(subject=decision.subject, decision="confirm", rule=decision.rule, reason=decision.reason),
    )
    return tuple(part for part in found if part.decision == "confirm")


def _shown(
    session: Session,
    pending: PendingCall,
    below: "tuple[SimulatedChange, ...]" = (),
) -> Preview | None:
    if pending.tool.preview is None:
        return None
    # The call has not begun, so there is nothing to tell about it.
    silent = replace(build_context(session, pending), metadata=ignore_metadata)
    if isinstance(silent, CommandContext):
        silent = replace(
            silent,
            earlier_changes=tuple(one.examined for one in below),
        )
    preview = pending.tool.preview(silent, pending.arguments)
    return replace(preview, time=preview.time or datetime.now(UTC))


def ignore_metadata(**_: object) -> None:
    """What a call tells on its way that is not carried out."""


_MAX_FILE_BYTES = 8 * 1024 * 1024


class SimulatedChange(NamedTuple):
    """What one call of a batch would change."""

    name: str
    """Id of its preview, or of the call if it is one of a file tool."""
    examined: OverlayChanges


def simulate_calls(session: Session, batch: Sequence[PendingCall]) -> list[SimulatedChange] | None:
    """What each of these calls would change, in their order. None if that is not known of one of them."""
    files, simulated = SimulatedFiles(session.journal, session.recorder), list[SimulatedChange]()
    for pending in batch:
        try:
            change = pending.simulated or _simulate_call(session, pending, files)
        except (ToolError, StoreError, OSError):
            return None
        if change is None:
            return None
        pending.simulated = change  # the calls before it are the same for every command after it
        files.add(change.examined, is_file_tool=pending.preview_id is None)
        if change.examined.steps:
            simulated.append(change)
    return simulated


def _simulate_call(session: Session, pending: PendingCall, files: SimulatedFiles) -> SimulatedChange | None:
    if pending.preview_id is not None:
        return SimulatedChange(pending.preview_id, load_preview(session.recorder.history, pending.preview_id).examined)
    if not isinstance(pending.tool, FileTool):
        return None
    if not all(_is_plain(session, fact.path, fact.real, fact.kind) for fact in pending.facts.paths):
        return None
    context = replace(build_context(session, pending), metadata=ignore_metadata)
    return SimulatedChange(pending.call.tool_call_id, pending.tool.simulate(context, pending.arguments, files))


def _is_plain(session: Session, path: str, real: str | None, kind: str) -> bool:
    """Whether a path of the workspace has a small file or none, and no link on the way."""
    if real is None or os.path.isabs(real) or os.path.normpath(path) != real or kind not in {"file", "missing"}:
        return False
    return kind == "missing" or os.path.getsize(os.path.join(session.workspace.main.path, real)) <= _MAX_FILE_BYTES
