"""The result of a call: built, recorded in the journal, added to the audit."""

import os
import time
from contextlib import suppress
from functools import lru_cache
from threading import get_ident
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.changes.recorder import UNDO_ID_SUFFIX
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import MEANING, ErrorInfo, StoreError, ToolError
from handrail.protocol.events import (
    ChangeEvent,
    ToolCallEnd,
    ToolCallError,
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
    ToolCallStart,
)
from handrail.protocol.permissions import Answer, PermissionRequest, Question
from handrail.protocol.results import Artifacts, Meta, ToolResult
from handrail.protocol.text import clip_text, truncate_middle
from handrail.protocol.wire import Json, decode_json, encode
from handrail.runtime.pending_call import PendingCall
from handrail.runtime.session import Session
from handrail.store.audit import AuditRecord, redact_commands
from handrail.store.conversation_state import truncate_with_reference
from handrail.store.journal import PendingEvent
from handrail.tools.tool import Output
from handrail.workspace.pages import WholeFileMark, encode_mark
from handrail.workspace.roots import clip_path

if TYPE_CHECKING:
    from handrail.store.change_log import LoggedChangeSet

BY_PERSON = "person.asked"
"""The rule of a call that a person made. No tool of a model or a third party can have it."""
_NUMBERS = (bool, int, float, type(None))
_MAX_PLAIN_CHARS = 200
_MAX_NAME_CHARS = 40
_LOOK_BACK_BYTES = 1 << 20
"""How far before the end of the audit a record is searched that may have been added just now."""
_NOT_TRUNCATED = Meta(truncated=False)
_NO_ARTIFACTS = Artifacts()
_CUT = "\n… {:,} characters were left out …\n"
_NOT_STORED = "Its output could not be stored; only the shown part is left."
_NOTHING_CHANGED = "Nothing was changed."
_UNKNOWN_OUTCOME = "Its effects are unknown. Check before you repeat it."


def build_result(session: Session, pending: PendingCall) -> None:
    output = pending.output
    if output is None:
        raise AssertionError("a call without error has output")
    result = _build_success(session, pending, output)
    if pending.tool.spec.category == "builtin":
        pending.pending_events += output.events
    else:
        _check_custom_result(result, output)
    if output.changes is not None and not any(kind is ChangeEvent for kind, _ in pending.pending_events):
        pending.pending_events.append((ChangeEvent, {**build_event_fields(pending), "change": output.changes}))
    pending.result = result


def build_error_result(pending: PendingCall) -> None:
    if pending.error is not None and pending.result is None:
        pending.result = _build_failure(pending, pending.error)
        if pending.change_set is not None:
            pending.pending_events.append((ChangeEvent, {**build_event_fields(pending), "change": pending.change_set}))


def build_pending_result(session: Session, call: ToolCall, waiting: PermissionRequest | Question) -> ToolResult[Any]:
    """The answer to a single call that waits for a person. It is never recorded, since it is not final."""
    pending = PendingCall(call, 0)
    pending.tool = session.offer.get(call.name) or pending.tool
    details = msgspec.to_builtins(waiting)
    if isinstance(waiting, Question):
        message = "The question waits for a reply. There is no result yet; the call of the same id has it then."
        error = ErrorInfo(code="UNAVAILABLE", message=message, details=details, retryable=True)
    else:
        message = f"{waiting.description} needs permission ({waiting.reason})."
        message = f"{message} Request {waiting.id} waits for an answer."
        error = ErrorInfo(code="PERMISSION_REQUIRED", message=message, details=details, retryable=False)
    return _build_failure(pending, error)


def require_result(pending: PendingCall) -> ToolResult[Any]:
    if pending.result is None:
        raise AssertionError("the call has no result")
    return pending.result


# Records


def finish(session: Session, pending: PendingCall) -> None:
    """Records the result in the journal and the audit, in the same order for all calls of this process."""
    result = require_result(pending)
    with session.closing:
        kind = ToolCallEnd if result.ok else ToolCallError
        record_state(session, pending, "finished", (kind, {**build_event_fields(pending), "result": result}))
        session.pending_audit.append(build_audit_record(session.id, pending, result))
        if get_ident() not in session.answering:
            session.flush_audit()


def record_state(session: Session, pending: PendingCall, state: str, event: PendingEvent) -> None:
    """Records the next state of a call together with its pending events and the event of the state."""
    call_id, pending_events = pending.call.tool_call_id, (*pending.pending_events, event)
    if pending.journal_state is None:
        pending_events = (build_start_event(pending), *pending_events)
        session.journal.record(call_id, pending.call_context, state, pending_events, given=not pending.id_is_ours)
    else:
        context = pending.call_context if pending.outcome_decision is not None else None
        session.journal.set_state(call_id, state, pending_events, context)
    pending.pending_events.clear()
    pending.journal_state = state


def restore_audit_record(session: Session, pending: PendingCall) -> None:
    """Adds the audit record of a recorded result, if an interrupt prevented that."""
    call_id = pending.call.tool_call_id
    entry = session.journal.entry(call_id)
    event = session.journal.event(entry.end_seq) if entry and entry.end_seq else None
    if not isinstance(event, ToolCallEnd | ToolCallError) or encode(event.result) != encode(require_result(pending)):
        return
    with session.closing:
        is_audited = session.chain.contains(session.id, {call_id}, session.chain.known_size - _LOOK_BACK_BYTES)
        session.pending_audit = [record for record in session.pending_audit if record.tool_call_id != call_id]
        if not is_audited:
            session.pending_audit.append(build_audit_record(session.id, pending, require_result(pending)))
        session.flush_audit()


def build_start_event(pending: PendingCall) -> PendingEvent:
    """The event of an incoming call, with all that is needed to run it again."""
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
        "purpose": call.purpose,
        "confirm": call.confirm,
        **_find_server_names(pending),
    }
    if pending.policy_ns and (pending.tool.spec.side_effects or pending.decision.decision != "allow"):
        fields["policy_ms"] = pending.policy_ns // 1_000 / 1_000
    return ToolCallStart, fields


def build_event_fields(pending: PendingCall) -> dict[str, Any]:
    names = _find_server_names(pending)
    return {"tool_call_id": pending.call.tool_call_id, "tool_call_name": pending.name, **names}


def build_answer_event(request: PermissionRequest, answer: Answer) -> PendingEvent:
    kind = ToolCallPermissionDenied if answer.kind == "deny" else ToolCallPermissionGranted
    fields = {"tool_call_id": request.tool_call_id, "tool_call_name": request.called}
    if request.tool_call_name is not None:
        fields |= {"tool_name": request.tool_name, "server_name": request.server_name}
    return kind, {**fields, "permission_request": request, "answer": answer}


def build_audit_record(session_id: str, pending: PendingCall, result: ToolResult[Any]) -> AuditRecord:
    error, decision, names = result.error, pending.final_decision, _find_server_names(pending)
    return AuditRecord(
        time=pending.call.timestamp,
        session_id=session_id,
        trace_id=pending.call.trace_id,
        tool_call_id=pending.call.tool_call_id,
        name=result.name,
        version=result.version,
        args=redact_arguments(pending.args, pending.tool.spec.plain_arguments),
        decision=decision.decision,
        rule=decision.rule,
        ok=result.ok,
        error_code=error.code if error else None,
        # An error message may quote an argument. The audit gets the meaning of the code instead.
        summary=result.summary if error is None else MEANING[error.code],
        duration_ms=result.duration_ms,
        files_changed=result.artifacts.files_changed,
        commands_run=redact_commands(result.artifacts.commands_run),
        limits=result.meta.limits,
        tool_name=names.get("tool_name", msgspec.UNSET),
        server_name=names.get("server_name", msgspec.UNSET),
        command=_redact_command(pending),
        answered_by=(pending.answer and pending.answer.by) or msgspec.UNSET,
    )


def _redact_command(pending: PendingCall) -> str | msgspec.UnsetType:
    """The command of a call, also if the call was refused before its facts were collected."""
    fact, args = pending.facts.command, pending.args
    text: Any = fact.text if fact else None
    if fact is None and "proc.exec" in pending.tool.spec.permissions and isinstance(args, dict):
        text = args.get("command")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(text, str):
        return msgspec.UNSET
    from handrail.policy.outline import outline_command  # noqa: PLC0415  tables that only commands need

    return outline_command(text, fact.seen if fact else None)


def _find_server_names(pending: PendingCall) -> dict[str, str]:
    """The tool's name at its server, and the server, as fields. After a crash they come from the recorded facts."""
    spec, fact = pending.tool.spec, pending.facts.foreign
    if spec.foreign is not None:
        return {"tool_name": spec.foreign.name, "server_name": spec.server}
    return {} if fact is None else {"tool_name": fact.tool, "server_name": fact.server}


# Success and failure


def _build_success(session: Session, pending: PendingCall, output: Output) -> ToolResult[Any]:
    content, stored = _fit_content(session, pending, output)
    if output.failure is not None:
        pending.fail(output.failure)
    warnings = output.warnings
    if output.kept is not None and "output" not in stored:
        warnings = (*warnings, _NOT_STORED)
    undo = output.changes.number if output.changes is not None else None
    by = pending.answer.by if pending.answer is not None and pending.answer.by != "expiry" else None
    truncated = output.truncated or "output" in stored or content is not output.content
    return ToolResult(
        tool_call_id=pending.call.tool_call_id,
        name=pending.name,
        version=pending.version,
        ok=pending.error is None,
        title=output.title or pending.tool.spec.title or pending.name,
        summary=output.summary,
        content=content,
        data=output.data,
        error=pending.error,
        meta=Meta(truncated=truncated, undo=undo, answered_by=by, **output.meta, **stored),
        artifacts=Artifacts(files_changed=output.files_changed, commands_run=output.commands_run)
        if output.files_changed or output.commands_run
        else _NO_ARTIFACTS,
        attachments=output.attachments,
        warnings=tuple(warnings),
        duration_ms=_measure_duration(pending),
    )


def _build_failure(pending: PendingCall, error: ErrorInfo) -> ToolResult[Any]:
    changes = pending.change_set
    return ToolResult(
        tool_call_id=pending.call.tool_call_id,
        name=pending.name,
        version=pending.version,
        ok=False,
        title=pending.tool.spec.title or pending.name,
        summary=error.message.partition("\n")[0],
        content=error.message,
        data=None,
        error=error,
        meta=_NOT_TRUNCATED,
        artifacts=_NO_ARTIFACTS if changes is None else Artifacts(files_changed=_list_changed_files(changes)),
        attachments=(),
        warnings=pending.warnings,
        duration_ms=_measure_duration(pending),
    )


def _check_custom_result(result: ToolResult[Any], output: Output) -> None:
    """Refuses the result of a custom tool that cannot be stored. Such a tool can return anything."""
    try:
        decode_json(encode(result), ToolResult[Any])
        decode_json(encode(output.changes), ChangeSet | None)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"{result.name} returned something that is not a result ({clip_text(str(error), 200)})."
        raise ToolError(
            "INTERNAL", f"{message} Your arguments are not the cause. Continue without this call."
        ) from None


def _fit_content(session: Session, pending: PendingCall, output: Output) -> tuple[str, dict[str, Any]]:
    """The content within the budget. If `read` is offered, longer content is stored for it."""
    if output.kept is not None or output.raw is not None:
        return output.content, _store_offloaded(session, pending.call.tool_call_id, output)
    text, full_text = output.content, output.content if output.whole is None else output.whole
    fits = len(text) <= pending.budget
    if (fits and output.whole is None) or pending.name == "read" or "read" not in session.offer.names:
        is_long = not fits and pending.tool.spec.category == "custom"
        return truncate_middle(text, pending.budget, _CUT) if is_long else text, {}
    reference = session.outputs.store(pending.call.tool_call_id, full_text)
    if output.whole is not None:
        text += f"… this is only a part; read {reference} for all of it …\n"
    content = text if len(text) <= pending.budget else truncate_with_reference(text, pending.budget, reference)
    return content, {"output": reference, "characters": len(full_text)}


def _store_offloaded(session: Session, call_id: str, output: Output) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    with suppress(StoreError):  # the call ran, and its result counts more than its full output
        if output.kept is not None:
            meta["output"] = session.outputs.store_offloaded(call_id, output.kept)
            meta["characters"] = output.kept.characters
        if output.raw is not None:
            meta["raw"] = session.outputs.store_raw(call_id, output.raw)
    return meta


def _list_changed_files(changes: ChangeSet) -> tuple[str, ...]:
    return tuple(change.path for change in changes.changes if change.kind != "folder")


def _measure_duration(pending: PendingCall) -> float:
    """In milliseconds, to the microsecond. Rounding a float costs more."""
    return (time.perf_counter_ns() - pending.started) // 1_000 / 1_000


# Interrupted calls


def describe_interrupted(session: Session, pending: PendingCall) -> str:
    """Settles what an interrupted call left half done. Returns a sentence about what it did."""
    spec = pending.tool.spec
    is_look = spec.name and spec.category == "builtin" and not spec.side_effects and pending.decision.rule != BY_PERSON
    if is_look or _is_read_only_command(pending):
        return _NOTHING_CHANGED
    if not _changes_only_files(pending):
        return _describe_command(session, pending)
    call_id = pending.call.tool_call_id
    try:
        session.recorder.settle(call_id)
        entry = session.recorder.made_by(call_id)
    except (StoreError, ToolError):
        return _UNKNOWN_OUTCOME
    if entry is None:
        return f"{_NOTHING_CHANGED}{_describe_sent(session, call_id)}"
    if entry.state != "done" or not entry.body.certain:
        return _UNKNOWN_OUTCOME
    if pending.facts.command is None and pending.decision.rule != BY_PERSON:
        _mark_read(session, entry)
    made = f"Its change was applied: {_adopt_change_set(pending, entry)}."
    return f"{made}{_describe_sent(session, call_id)}"


def _is_read_only_command(pending: PendingCall) -> bool:
    """Whether the call ran a command that can change nothing, in a sandbox that ensures it."""
    command = pending.facts.command
    if command is None or command.tier == 0:
        return False
    from handrail.policy.parse import parse_fact  # noqa: PLC0415  tables that only commands need

    return parse_fact(command).is_read_only


def _changes_only_files(pending: PendingCall) -> bool:
    """Whether all possible effects of the call are in the change log."""
    spec, command = pending.tool.spec, pending.facts.command
    is_file_tool = bool(spec.name) and spec.category == "builtin" and spec.side_effects == ("files",)
    ran_in_overlay = command is not None and command.has_overlay
    return is_file_tool or ran_in_overlay or pending.decision.rule == BY_PERSON


def _describe_command(session: Session, pending: PendingCall) -> str:
    """The outcome of a command that ran on the real files, as far as a snapshot shows it."""
    if pending.facts.command is None:
        return _UNKNOWN_OUTCOME
    call_id = pending.call.tool_call_id
    try:
        session.recorder.settle(f"{call_id}{UNDO_ID_SUFFIX}")
        session.recorder.settle(call_id)
        entry = session.recorder.made_by(call_id)
    except (StoreError, ToolError, OSError):
        return _UNKNOWN_OUTCOME
    if entry is None or entry.state != "done" or not entry.body.changes:
        return _UNKNOWN_OUTCOME
    if entry.undone_by is not None:
        return f"Its changes were undone by {entry.undone_by}; check before you repeat it."
    return f"Its known changes: {_adopt_change_set(pending, entry)}; check before you repeat it."


def _adopt_change_set(pending: PendingCall, entry: "LoggedChangeSet") -> str:
    """Puts a logged change set into the call's result. Returns the names of its files."""
    body = entry.body
    pending.change_set = ChangeSet(
        changes=body.changes,
        number=entry.number,
        undoable=body.undoable,
        undoes=body.undoes,
        not_covered=body.not_covered,
    )
    files = _list_changed_files(pending.change_set)
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    undo = f" (undo {entry.number})" if body.undoable else ""
    return f"{', '.join(map(clip_path, files[:3]))}{more}{undo}"


def _mark_read(session: Session, entry: "LoggedChangeSet") -> None:
    """Marks the files that the tool wrote as read: the session knows their content."""
    for step in entry.body.steps:
        if step.after is not None and step.after.kind == "file":
            session.journal.set_mark(os.fsdecode(step.path), encode_mark(WholeFileMark(step.after.hash)))


def _describe_sent(session: Session, call_id: str) -> str:
    """A warning if the call reached other hosts: an overlay does not hold that back."""
    if not session.journal.has_reached(call_id):
        return ""
    return " Other hosts have already received its requests: check before you repeat it."


def redact_arguments(arguments: Json, plain: tuple[str, ...]) -> Json:
    """Keeps numbers and the plain arguments of a tool. Every other text becomes its length."""
    if not isinstance(arguments, dict):
        return _mask(arguments)
    items: dict[Any, Any] = arguments  # pyright: ignore[reportUnknownVariableType]
    return {
        name if name in plain else _redact_name(name): value
        if isinstance(value, _NUMBERS)
        else _redact_value(name, value, plain)
        for name, value in items.items()
    }


@lru_cache(maxsize=256)
def _redact_name(name: object) -> str:
    """Hides a name that is no identifier: it may be any text."""
    text = str(name)
    return text if text.isidentifier() and len(text) <= _MAX_NAME_CHARS else _mask(text)


def _redact_value(name: object, value: Json, plain: tuple[str, ...]) -> Json:
    is_plain = name in plain and isinstance(value, str) and len(value) <= _MAX_PLAIN_CHARS
    return value if is_plain else _mask(value)


def _mask(value: Json) -> str:
    if isinstance(value, str):
        return f"<{len(value)} characters>"
    return f"<{type(value).__name__}>"
