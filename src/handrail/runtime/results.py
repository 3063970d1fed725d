"""Makes, stores and records the result of a call."""

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.changes.recorder import UNDO_ID_SUFFIX
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import MEANING, ErrorInfo, StoreError, ToolError
from handrail.protocol.events import ChangeEvent, ToolCallEnd, ToolCallError, ToolCallStart
from handrail.protocol.permissions import PermissionRequest, Question
from handrail.protocol.records import AuditRecord
from handrail.protocol.results import Artifacts, Meta, ToolResult
from handrail.protocol.text import clip_text
from handrail.protocol.wire import decode_json, encode
from handrail.runtime.session import PendingCall, Session
from handrail.store.audit import note_audited, redact_arguments, redact_commands
from handrail.store.journal import PendingEvent
from handrail.tools.file_state import WholeFileMark, encode_mark
from handrail.tools.text import truncate_with_reference
from handrail.tools.tool import Output
from handrail.workspace.errors import clip_path

if TYPE_CHECKING:
    from handrail.store.change_log import LoggedChangeSet


# § [runtime.closing] The last steps of a call: seal it into a result, write the result down, add its line to the
# § audit.

_NOTED_EVERY_CALLS = 64
"""Calls between two notes of how far the audit is: the most that are looked up again after a crash."""
_NOTHING = Meta(truncated=False)
_NO_ARTIFACTS = Artifacts()
_NOT_KEPT = "There was no room to keep what it printed; only what is shown here is left of it."
_LOOK_BACK_BYTES = 1 << 20
"""How far before the end of the audit a line is looked for that may have been added a moment ago."""


def build_result(session: Session, pending: PendingCall) -> None:
    """Makes the one result of what the tool returned."""
    output = pending.output
    if output is None:
        raise AssertionError("a flight without error has output")
    result = _success(session, pending, output)
    if pending.tool.spec.category != "builtin":
        _prove(result, output)
    else:
        pending.pending_events += output.events
    if output.changes is not None and not any(kind is ChangeEvent for kind, _ in pending.pending_events):
        pending.pending_events.append((ChangeEvent, {**build_event_fields(pending), "change": output.changes}))
    pending.result = result


def build_error_result(_: Session, pending: PendingCall) -> None:
    """Makes the one result of a call that failed or was refused."""
    if pending.error is not None and pending.result is None:
        pending.result = _failure(pending, pending.error)
        if pending.change_set is not None:
            pending.pending_events.append((ChangeEvent, {**build_event_fields(pending), "change": pending.change_set}))


def finish(session: Session, pending: PendingCall) -> None:
    """Writes the result down and adds it to the audit, in the same order for all calls of this process."""
    result = require_result(pending)
    with session.closing:
        kind = ToolCallEnd if result.ok else ToolCallError
        record_state(session, pending, "finished", (kind, {**build_event_fields(pending), "result": result}))
        session.pending_audit.append(build_audit_record(session.id, pending, result))
        flush_audit(session)
        session.since_checkpoint += 1
        if session.since_checkpoint >= _NOTED_EVERY_CALLS:
            session.since_checkpoint = 0
            note_audited(session.journal, session.chain.known_size)


def restore_audit_record(session: Session, pending: PendingCall) -> None:
    """Adds the line of a call whose result is written down, if an interrupt kept it from being added."""
    call_id = pending.call.tool_call_id
    entry = session.journal.entry(call_id)
    event = session.journal.event(entry.end_seq) if entry and entry.end_seq else None
    if not isinstance(event, ToolCallEnd | ToolCallError) or encode(event.result) != encode(require_result(pending)):
        return
    with session.closing:
        found = session.chain.contains(session.id, {call_id}, session.chain.known_size - _LOOK_BACK_BYTES)
        session.pending_audit = [record for record in session.pending_audit if record.tool_call_id != call_id]
        if not found:
            session.pending_audit.append(build_audit_record(session.id, pending, require_result(pending)))
        flush_audit(session)


def flush_audit(session: Session) -> None:
    """Adds the lines that are due."""
    while session.pending_audit:
        session.chain.append(session.pending_audit[0])
        del session.pending_audit[0]


def build_pending_result(session: Session, call: ToolCall, waiting: PermissionRequest | Question) -> ToolResult[Any]:
    """The answer to a single call that waits for a person. It is never recorded, since it is not final."""
    pending = PendingCall(call, time.perf_counter(), 0)
    pending.tool = session.offer.get(call.name) or pending.tool
    details = msgspec.to_builtins(waiting)
    if isinstance(waiting, Question):
        message = "The question waits for a reply. There is no result yet; the call of the same id has it then."
        error = ErrorInfo(code="UNAVAILABLE", message=message, details=details, retryable=True)
    else:
        message = f"{waiting.description} needs permission ({waiting.reason})."
        message = f"{message} Request {waiting.id} waits for an answer."
        error = ErrorInfo(code="PERMISSION_REQUIRED", message=message, details=details, retryable=False)
    return _failure(pending, error)


def build_start_event(pending: PendingCall) -> PendingEvent:
    """The event that a call came in, with all that is needed to run it again."""
    call = pending.call
    fields = {
        "tool_call_id": call.tool_call_id,
        "tool_call_name": call.name,
        "args": pending.args,
        "trace_id": call.trace_id,
        "version": call.version,
        "provider_call_id": call.provider_call_id,
        "message_id": call.message_id,
        "requested_permissions": call.requested_permissions,
        **_served(pending),
    }
    return ToolCallStart, fields


def require_result(pending: PendingCall) -> ToolResult[Any]:
    """The result of a flight that has one."""
    if pending.result is None:
        raise AssertionError("the flight was not sealed")
    return pending.result


def build_audit_record(session_id: str, pending: PendingCall, result: ToolResult[Any]) -> AuditRecord:
    """What the audit keeps of a call."""
    error, verdict = result.error, pending.final_decision
    return AuditRecord(
        time=pending.call.timestamp,
        session_id=session_id,
        trace_id=pending.call.trace_id,
        tool_call_id=pending.call.tool_call_id,
        name=result.name,
        version=result.version,
        args=redact_arguments(pending.args, pending.tool.spec.plain_arguments),
        decision=verdict.decision,
        rule=verdict.rule,
        ok=result.ok,
        error_code=error.code if error else None,
        # The message of an error may quote an argument: the audit has what the code means.
        summary=result.summary if error is None else MEANING[error.code],
        duration_ms=result.duration_ms,
        files_changed=result.artifacts.files_changed,
        commands_run=redact_commands(result.artifacts.commands_run),
        limits=result.meta.limits,
        **_served(pending),
        command=_redacted_command(pending),
    )


def _redacted_command(pending: PendingCall) -> str | msgspec.UnsetType:
    """The command of a call that is for one, also where the call was refused before there were facts."""
    fact, args = pending.facts.command, pending.args
    text: Any = fact.text if fact else None
    if fact is None and "proc.exec" in pending.tool.spec.permissions and isinstance(args, dict):
        text = args.get("command")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(text, str):
        return msgspec.UNSET
    from handrail.policy.outline import outline_command  # noqa: PLC0415  the tables are only for commands

    return outline_command(text, fact.seen if fact else None)


def record_state(session: Session, pending: PendingCall, state: str, last: PendingEvent) -> None:
    """Takes the call to its next state in the journal, with the events that belong to it; `last` is the state's own."""
    call_id, drafts = pending.call.tool_call_id, (*pending.pending_events, last)
    if pending.journal_state is None:
        drafts = (build_start_event(pending), *drafts)
        session.journal.record(call_id, pending.call_context, state, drafts, given=not pending.id_is_ours)
    else:
        session.journal.set_state(
            call_id, state, drafts, pending.call_context if pending.outcome_decision is not None else None
        )
    pending.pending_events.clear()
    pending.journal_state = state


def build_event_fields(pending: PendingCall) -> dict[str, Any]:
    """How an event says which call it is about."""
    return {"tool_call_id": pending.call.tool_call_id, "tool_call_name": pending.name, **_served(pending)}


def _served(pending: PendingCall) -> dict[str, Any]:
    """Of another server's tool, its own name and the server's; after a crash as they were written down."""
    spec, fact = pending.tool.spec, pending.facts.foreign
    if spec.foreign is not None:
        return {"tool_name": spec.foreign.name, "server_name": spec.server}
    return {} if fact is None else {"tool_name": fact.tool, "server_name": fact.server}


def _failure(pending: PendingCall, error: ErrorInfo) -> ToolResult[Any]:
    return ToolResult(
        tool_call_id=pending.call.tool_call_id,
        name=pending.name,
        version=pending.version,
        ok=False,
        title=_title(pending),
        summary=error.message.partition("\n")[0],
        content=error.message,
        data=None,
        error=error,
        meta=_NOTHING,
        artifacts=_NO_ARTIFACTS
        if pending.change_set is None
        else Artifacts(files_changed=list_changed_files(pending.change_set)),
        attachments=(),
        warnings=pending.warnings,
        duration_ms=_elapsed(pending),
    )


def _undo(output: Output) -> int | None:
    return output.changes.number if output.changes is not None else None


def list_changed_files(changes: ChangeSet) -> tuple[str, ...]:
    """The files of a change set, without the folders on their way."""
    return tuple(change.path for change in changes.changes if change.kind != "folder")


def _success(session: Session, pending: PendingCall, output: Output) -> ToolResult[Any]:
    content, kept = _fitted(session, pending, output)
    if output.failure is not None:
        pending.fail(output.failure)
    return ToolResult(
        tool_call_id=pending.call.tool_call_id,
        name=pending.name,
        version=pending.version,
        ok=pending.error is None,
        title=output.title or _title(pending),
        summary=output.summary,
        content=content,
        data=output.data,
        error=pending.error,
        meta=Meta(truncated=output.truncated or "output" in kept, undo=_undo(output), **output.meta, **kept),
        artifacts=Artifacts(files_changed=output.files_changed, commands_run=output.commands_run)
        if output.files_changed or output.commands_run
        else _NO_ARTIFACTS,
        attachments=output.attachments,
        warnings=(*output.warnings, *([_NOT_KEPT] if output.kept is not None and "output" not in kept else [])),
        duration_ms=_elapsed(pending),
    )


def _prove(result: ToolResult[Any], output: Output) -> None:
    """A custom tool can return anything; what is no result must reach neither journal nor audit."""
    try:
        decode_json(encode(result), ToolResult[Any])
        decode_json(encode(output.changes), ChangeSet | None)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"{result.name} returned something that is no result ({clip_text(str(error), 200)})."
        raise ToolError("INTERNAL", f"{message} It is not your arguments; go on without it.") from None


def _fitted(session: Session, pending: PendingCall, output: Output) -> tuple[str, dict[str, Any]]:
    """Content over the budget is kept whole and shown in part, where `read` can fetch the rest."""
    if output.kept is not None or output.raw is not None:
        return output.content, _kept_aside(session, pending.call.tool_call_id, output)
    text, whole = output.content, output.content if output.whole is None else output.whole
    fits = len(text) <= pending.budget
    if (fits and output.whole is None) or pending.name == "read" or "read" not in session.offer.names:
        return text, {}
    reference = session.outputs.store(pending.call.tool_call_id, whole)
    if output.whole is not None:
        text += f"… this is a part of it; read {reference} for all of it …\n"
    shown = text if len(text) <= pending.budget else truncate_with_reference(text, pending.budget, reference)
    return shown, {"output": reference, "characters": len(whole)}


def _kept_aside(session: Session, call_id: str, output: Output) -> dict[str, Any]:
    """Keeps what the tool has shown in part, and named, by itself."""
    meta: dict[str, Any] = {}
    # It is done, and what came of it is worth more than all that it printed.
    with suppress(StoreError):
        if output.kept is not None:
            meta["output"] = session.outputs.store_offloaded(call_id, output.kept)
            meta["characters"] = output.kept.characters
        if output.raw is not None:
            meta["raw"] = session.outputs.store_raw(call_id, output.raw)
    return meta


def _title(pending: PendingCall) -> str:
    return pending.tool.spec.title or pending.name


def _elapsed(pending: PendingCall) -> float:
    return round((time.perf_counter() - pending.clock) * 1e6) / 1000  # a tenth of what round(…, 3) costs


# § [runtime.cut_off] What became of a call that was cut off: its change was made, or nothing was changed, or nobody
# § can know.

BY_PERSON = "person.asked"
"""The rule of what a person did: no tool that a model or a third party brings can have it."""
_NOTHING_CHANGED = "Nothing was changed."
_UNKNOWN = "What it did is not known; look before you repeat it."


def describe_interrupted(session: Session, pending: PendingCall) -> str:
    """Settles what the call left half done; the sentence that says what it did."""
    if _only_looked(pending):
        return _NOTHING_CHANGED
    if not _changes_only_files(pending):
        return _of_command(session, pending)
    call_id = pending.call.tool_call_id
    try:
        session.recorder.settle(call_id)
        entry = session.recorder.made_by(call_id)
    except (StoreError, ToolError):
        return _UNKNOWN
    if entry is None:
        return f"{_NOTHING_CHANGED}{_sent(session, pending)}"
    if entry.state != "done" or not entry.body.certain:
        return _UNKNOWN
    if pending.facts.command is None and pending.decision.rule != BY_PERSON:
        _mark_seen(session, entry)
    made = f"Its change was made: {_told(pending, entry)}."
    return f"{made}{_sent(session, pending)}"


def _mark_seen(session: Session, entry: "LoggedChangeSet") -> None:
    """The session knows what its own tool wrote, also where the call did not come to say so."""
    for step in entry.body.steps:
        if step.after is not None and step.after.kind == "file":
            session.journal.set_mark(os.fsdecode(step.path), encode_mark(WholeFileMark(step.after.hash)))


def _of_command(session: Session, pending: PendingCall) -> str:
    """Of a command that ran on the files themselves there may be a snapshot from before: it tells what to take back."""
    if pending.facts.command is None:
        return _UNKNOWN
    call_id = pending.call.tool_call_id
    try:
        session.recorder.settle(f"{call_id}{UNDO_ID_SUFFIX}")
        session.recorder.settle(call_id)
        entry = session.recorder.made_by(call_id)
    except (StoreError, ToolError, OSError):
        return _UNKNOWN
    if entry is None or entry.state != "done" or not entry.body.changes:
        return _UNKNOWN
    if entry.undone_by is not None:
        return f"What it changed was taken back by {entry.undone_by}; look before you repeat it."
    return f"As far as is known it changed {_told(pending, entry)}; look before you repeat it."


def _told(pending: PendingCall, entry: "LoggedChangeSet") -> str:
    """The files of a change that was made, which the result then has too."""
    body = entry.body
    pending.change_set = ChangeSet(
        changes=body.changes,
        number=entry.number,
        undoable=body.undoable,
        undoes=body.undoes,
        not_covered=body.not_covered,
    )
    files = list_changed_files(pending.change_set)
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    undo = f" (undo {entry.number})" if body.undoable else ""
    return f"{', '.join(map(clip_path, files[:3]))}{more}{undo}"


def _sent(session: Session, pending: PendingCall) -> str:
    """What an overlay does not hold back."""
    if not session.journal.has_reached(pending.call.tool_call_id):
        return ""
    return " What it sent to other hosts by then was sent: look before you repeat it."


def _changes_only_files(pending: PendingCall) -> bool:
    """Whether all that the call could have done is in the change log."""
    spec = pending.tool.spec
    by_tool = bool(spec.name) and spec.category == "builtin" and spec.side_effects == ("files",)
    return by_tool or _is_layered(pending) or pending.decision.rule == BY_PERSON


def _is_layered(pending: PendingCall) -> bool:
    """Whether it was a command whose changes go into an overlay, which is gone with it unless they were committed."""
    command = pending.facts.command
    return command is not None and command.has_overlay


def _only_looked(pending: PendingCall) -> bool:
    """Whether it was a command that could change nothing, and the sandbox saw to it."""
    command = pending.facts.command
    if command is None or command.tier == 0:
        return False
    from handrail.policy.parse import parse_fact  # noqa: PLC0415  tables that only commands need

    return parse_fact(command).is_read_only
