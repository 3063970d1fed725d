"""The last steps of a call: seal it into a result, write the result down, add its line to the audit."""

import time
from contextlib import suppress
from typing import Any

import msgspec

from handrail.protocol.call import ToolCall
from handrail.protocol.change import ChangeSet
from handrail.protocol.error import MEANING, ErrorInfo, StoreError, ToolError
from handrail.protocol.event import Change, ToolCallEnd, ToolCallError, ToolCallStart
from handrail.protocol.permission import PermissionRequest
from handrail.protocol.reading import from_json
from handrail.protocol.result import Artifacts, Meta, ToolResult
from handrail.protocol.wire import encode
from handrail.protocol.wording import visible
from handrail.runtime.session import Flight, Session
from handrail.store.audit import Record
from handrail.store.journal import Draft
from handrail.store.redact import redacted, redacted_commands
from handrail.tools.contract import Output
from handrail.tools.preview import preview_of

_NOTED_EVERY = 64
"""Calls between two notes of how far the audit is: the most that are looked up again after a crash."""
_NOTHING = Meta(truncated=False)
_NO_ARTIFACTS = Artifacts()
_NOT_KEPT = "There was no room to keep what it printed; only what is shown here is left of it."
_LOOK_BACK = 1 << 20
"""How far before the end of the audit a line is looked for that may have been added a moment ago."""


def seal_output(session: Session, flight: Flight) -> None:
    """Makes the one result of what the tool returned."""
    output = flight.output
    if output is None:
        raise AssertionError("a flight without error has output")
    result = _success(session, flight, output)
    if flight.tool.spec.category != "builtin":
        _prove(result, output)
    else:
        flight.drafts += output.events
    if output.changes is not None and not any(kind is Change for kind, _ in flight.drafts):
        flight.drafts.append((Change, {**named(flight), "change": output.changes}))
    flight.result = result


def seal_error(_: Session, flight: Flight) -> None:
    """Makes the one result of a call that failed or was refused."""
    if flight.error is not None and flight.result is None:
        flight.result = _failure(flight, flight.error)
        if flight.made is not None:
            flight.drafts.append((Change, {**named(flight), "change": flight.made}))


def finish(session: Session, flight: Flight) -> None:
    """Writes the result down and adds it to the audit, in the same order for all calls of this process."""
    result = sealed(flight)
    with session.closing:
        kind = ToolCallEnd if result.ok else ToolCallError
        write_down(session, flight, "finished", (kind, {**named(flight), "result": result}))
        session.owed.append(record_of(session.id, flight, result))
        pay(session)
        session.unnoted += 1
        if session.unnoted >= _NOTED_EVERY:
            session.unnoted = 0
            session.journal.note_audited(session.chain.known_size)


def make_up(session: Session, flight: Flight) -> None:
    """Adds the line of a call whose result is written down, if an interrupt kept it from being added."""
    call_id = flight.call.tool_call_id
    entry = session.journal.entry(call_id)
    event = session.journal.event(entry.end_seq) if entry and entry.end_seq else None
    if not isinstance(event, ToolCallEnd | ToolCallError) or encode(event.result) != encode(sealed(flight)):
        return
    with session.closing:
        found = session.chain.contains(session.id, {call_id}, session.chain.known_size - _LOOK_BACK)
        session.owed = [record for record in session.owed if record.tool_call_id != call_id]
        if not found:
            session.owed.append(record_of(session.id, flight, sealed(flight)))
        pay(session)


def pay(session: Session) -> None:
    """Adds the lines that are due."""
    while session.owed:
        session.chain.append(session.owed[0])
        del session.owed[0]


def interim(session: Session, call: ToolCall, request: PermissionRequest) -> ToolResult[Any]:
    """The answer while a person is asked: never a final result, so neither journal nor audit knows it."""
    message = f"{request.description} needs permission ({request.reason}). Request {request.id} waits for an answer."
    flight = Flight(call, time.perf_counter(), 0)
    flight.tool = session.offer.get(call.name) or flight.tool
    details = msgspec.to_builtins(request)
    return _failure(flight, ErrorInfo(code="PERMISSION_REQUIRED", message=message, details=details, retryable=False))


def start_draft(flight: Flight) -> Draft:
    """The event that a call came in, with all that is needed to run it again."""
    call = flight.call
    fields = {
        "tool_call_id": call.tool_call_id,
        "tool_call_name": call.name,
        "args": flight.args,
        "trace_id": call.trace_id,
        "version": call.version,
        "provider_call_id": call.provider_call_id,
        "message_id": call.message_id,
        "requested_permissions": call.requested_permissions,
        **_served(flight),
    }
    return ToolCallStart, fields


def sealed(flight: Flight) -> ToolResult[Any]:
    """The result of a flight that has one."""
    if flight.result is None:
        raise AssertionError("the flight was not sealed")
    return flight.result


def record_of(session_id: str, flight: Flight, result: ToolResult[Any]) -> Record:
    """What the audit keeps of a call."""
    error, verdict = result.error, flight.verdict
    return Record(
        time=flight.call.timestamp,
        session_id=session_id,
        trace_id=flight.call.trace_id,
        tool_call_id=flight.call.tool_call_id,
        name=result.name,
        version=result.version,
        args=redacted(flight.args, flight.tool.spec.plain_arguments),
        decision=verdict.decision,
        rule=verdict.rule,
        ok=result.ok,
        error_code=error.code if error else None,
        # The message of an error may quote an argument: the audit has what the code means.
        summary=result.summary if error is None else MEANING[error.code],
        duration_ms=result.duration_ms,
        files_changed=result.artifacts.files_changed,
        commands_run=redacted_commands(result.artifacts.commands_run),
        limits=result.meta.limits,
        **_served(flight),
        command=_redacted_command(flight),
    )


def _redacted_command(flight: Flight) -> str | msgspec.UnsetType:
    """The command of a call that is for one, also where the call was refused before there were facts."""
    fact, args = flight.facts.command, flight.args
    text: Any = fact.text if fact else None
    if fact is None and "proc.exec" in flight.tool.spec.permissions and isinstance(args, dict):
        text = args.get("command")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(text, str):
        return msgspec.UNSET
    from handrail.policy.confinement import outline_command  # noqa: PLC0415  the tables are only for commands

    return outline_command(text, fact.seen if fact else None)


def write_down(session: Session, flight: Flight, state: str, last: Draft) -> None:
    """Takes the call to its next state in the journal, with the events that belong to it; `last` is the state's own."""
    call_id, drafts = flight.call.tool_call_id, (*flight.drafts, last)
    if flight.recorded is None:
        drafts = (start_draft(flight), *drafts)
        session.journal.record(call_id, flight.decided, state, drafts, given=not flight.fresh)
    else:
        session.journal.move(call_id, state, drafts, flight.decided if flight.judged is not None else None)
    flight.drafts.clear()
    flight.recorded = state


def named(flight: Flight) -> dict[str, Any]:
    """How an event says which call it is about."""
    return {"tool_call_id": flight.call.tool_call_id, "tool_call_name": flight.name, **_served(flight)}


def _served(flight: Flight) -> dict[str, Any]:
    """Of another server's tool, its own name and the server's; after a crash as they were written down."""
    spec, fact = flight.tool.spec, flight.facts.foreign
    if spec.foreign is not None:
        return {"tool_name": spec.foreign.name, "server_name": spec.server}
    return {} if fact is None else {"tool_name": fact.tool, "server_name": fact.server}


def _failure(flight: Flight, error: ErrorInfo) -> ToolResult[Any]:
    return ToolResult(
        tool_call_id=flight.call.tool_call_id,
        name=flight.name,
        version=flight.version,
        ok=False,
        title=_title(flight),
        summary=error.message.partition("\n")[0],
        content=error.message,
        data=None,
        error=error,
        meta=_NOTHING,
        artifacts=_NO_ARTIFACTS if flight.made is None else Artifacts(files_changed=files_of(flight.made)),
        attachments=(),
        warnings=flight.warnings,
        duration_ms=_elapsed(flight),
    )


def _undo(output: Output) -> int | None:
    return output.changes.number if output.changes is not None else None


def files_of(changes: ChangeSet) -> tuple[str, ...]:
    """The files of a change set, without the folders on their way."""
    return tuple(change.path for change in changes.changes if change.kind != "folder")


def _success(session: Session, flight: Flight, output: Output) -> ToolResult[Any]:
    content, kept = _fitted(session, flight, output)
    if output.failure is not None:
        flight.fail(output.failure)
    return ToolResult(
        tool_call_id=flight.call.tool_call_id,
        name=flight.name,
        version=flight.version,
        ok=flight.error is None,
        title=output.title or _title(flight),
        summary=output.summary,
        content=content,
        data=output.data,
        error=flight.error,
        meta=Meta(truncated=output.truncated or "output" in kept, undo=_undo(output), **output.meta, **kept),
        artifacts=Artifacts(files_changed=output.files_changed, commands_run=output.commands_run)
        if output.files_changed or output.commands_run
        else _NO_ARTIFACTS,
        attachments=output.attachments,
        warnings=(*output.warnings, *([_NOT_KEPT] if output.kept is not None and "output" not in kept else [])),
        duration_ms=_elapsed(flight),
    )


def _prove(result: ToolResult[Any], output: Output) -> None:
    """A custom tool can return anything; what is no result must reach neither journal nor audit."""
    try:
        from_json(encode(result), ToolResult[Any])
        from_json(encode(output.changes), ChangeSet | None)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"{result.name} returned something that is no result ({visible(str(error), 200)})."
        raise ToolError("INTERNAL", f"{message} It is not your arguments; go on without it.") from None


def _fitted(session: Session, flight: Flight, output: Output) -> tuple[str, dict[str, Any]]:
    """Content over the budget is kept whole and shown in part, where `read` can fetch the rest."""
    if output.kept is not None or output.raw is not None:
        return output.content, _kept_aside(session, flight.call.tool_call_id, output)
    text, whole = output.content, output.content if output.whole is None else output.whole
    fits = len(text) <= flight.budget
    if (fits and output.whole is None) or flight.name == "read" or "read" not in session.offer.names:
        return text, {}
    reference = session.outputs.keep(flight.call.tool_call_id, whole)
    if output.whole is not None:
        text += f"… this is a part of it; read {reference} for all of it …\n"
    shown = text if len(text) <= flight.budget else preview_of(text, flight.budget, reference)
    return shown, {"output": reference, "characters": len(whole)}


def _kept_aside(session: Session, call_id: str, output: Output) -> dict[str, Any]:
    """Keeps what the tool has shown in part, and named, by itself."""
    meta: dict[str, Any] = {}
    # It is done, and what came of it is worth more than all that it printed.
    with suppress(StoreError):
        if output.kept is not None:
            meta["output"] = session.outputs.keep_aside(call_id, output.kept)
            meta["characters"] = output.kept.characters
        if output.raw is not None:
            meta["raw"] = session.outputs.keep_raw(call_id, output.raw)
    return meta


def _title(flight: Flight) -> str:
    return flight.tool.spec.title or flight.name


def _elapsed(flight: Flight) -> float:
    return round((time.perf_counter() - flight.clock) * 1e6) / 1000  # a tenth of what round(…, 3) costs
