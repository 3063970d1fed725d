"""The tool process."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from handrail.protocol.arguments import build_argument_error
from handrail.protocol.changes import Preview
from handrail.protocol.errors import Problem, ToolError
from handrail.protocol.records import ProcessRecord
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.tool import Background, CommandContext, Output, ProcessUse, Tool, Touches

if TYPE_CHECKING:
    from handrail.process.sessions.sessions import ProcessSession

Action = Literal["list", "poll", "log", "write", "kill", "clear", "remove"]
MAX_LOG_ROWS = 10_000
_MAX_WRITTEN_BYTES = 100_000
"""Bytes of one write: a person may have to read them."""
_DEFAULT_LOG_ROWS = 2_000
_STATE_ROOM_CHARS = 300
_TAKERS = {"offset": "log", "limit": "log", "data": "write", "eof": "write"}
"""The only action that takes each of these arguments."""
_MAX_SHOWN_CHARS = 200


class ProcessArguments(Arguments, frozen=True):
    """The arguments of process."""

    action: Annotated[
        Action,
        Meta(
            description="list all; poll: new output; log: pages of all output; write to its input; "
            "kill it; clear its log; remove: end it, delete its log."
        ),
    ]
    session_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        Meta(description="The process session, from exec or list; needed for all but list."),
    ] = None
    offset: Annotated[
        int | None, Meta(description="log: first line, from 1; negative counts from the end (-200 = the last 200).")
    ] = None
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_LOG_ROWS)] | None,
        Meta(description="log: maximum lines; default 2000.", extra={"default": 2_000, "unit": "lines"}),
    ] = None
    data: Annotated[str | None, Meta(description="write: the text to send; end a line with a newline.")] = None
    eof: Annotated[bool, Meta(description="write: end the input after the data.")] = False


class ProcessData(Wire, frozen=True):
    """Process sessions, or the outcome of an action."""

    processes: tuple[ProcessRecord, ...] | None = None
    """list: all, the oldest first."""
    process: ProcessRecord | None = None
    """The state after the action. For remove, the state before."""
    output: str | None = None
    """poll: output since the last poll; log: a page."""
    first_line: int | None = None
    """log: the first line of the page."""
    skipped: int = 0
    """poll: bytes before the output that the log has dropped."""
    waiting: int = 0
    """poll: bytes after the output, for the next poll."""


PROCESS = ToolSpec(
    name="process",
    title="Process",
    description=(
        "Manage background processes (process sessions): list them, read their output, write to their input, end "
        "them. Start one with exec (background or yieldMs)."
    ),
    arguments=ProcessArguments,
    data=ProcessData,
    permissions=("proc.exec",),
    side_effects=("processes",),
    plain_arguments=("action", "sessionId"),
    layer="base",
    stage="run",
    intent="manage background processes",
)


def build_process_tool(background: Background) -> Tool:
    return Tool(PROCESS, partial(_run, background), _declare_touches, _preview, context=CommandContext)


def _declare_touches(arguments: ProcessArguments) -> Touches:
    if problems := tuple(_find_problems(arguments)):
        raise build_argument_error(PROCESS, problems)
    data = arguments.data
    if data is not None and (size := len(data.encode("utf-8", "surrogatepass"))) > _MAX_WRITTEN_BYTES:
        message = f"process: data is {size:,} bytes long, and {_MAX_WRITTEN_BYTES:,} is the limit of one call."
        raise ToolError("LIMIT_EXCEEDED", f"{message} Nothing was written. Write it in parts.")
    return Touches(process=ProcessUse(arguments.action, arguments.session_id or ""))


def _find_problems(arguments: ProcessArguments) -> list[Problem]:
    action, found = arguments.action, list[Problem]()
    if action == "list" and arguments.session_id is not None:
        found.append(Problem(field="sessionId", problem="sessionId is not allowed for list"))
    if action != "list" and arguments.session_id is None:
        found.append(Problem(field="sessionId", problem=f"sessionId is required for {action}; list has the ids"))
    if action == "log" and arguments.offset == 0:
        found.append(Problem(field="offset", problem="offset is 0; lines count from 1, and from -1 backwards"))
    if action == "write" and not arguments.data and not arguments.eof:
        found.append(Problem(field="data", problem="write needs data, or eof"))
    for name, taker in _TAKERS.items():
        given = getattr(arguments, name)
        if action != taker and given is not None and given is not False:
            found.append(Problem(field=name, problem=f"{name} is for {taker} only"))
    return found


def _preview(_: CommandContext, arguments: ProcessArguments) -> Preview:
    end = "(and closed the input)" if arguments.eof else ""
    return Preview(kind="input", text="\n".join(filter(None, (arguments.data, end))))


def _run(background: Background, context: CommandContext, arguments: ProcessArguments) -> Output:
    if arguments.action == "list":
        records = background.sessions.records()
        running = sum(record.state == "running" for record in records)
        content = "".join(f"{_render_row(record)}\n" for record in records) or "There are no process sessions.\n"
        return Output(
            summary=f"{running} running, {len(records) - running} ended",
            content=content,
            data=ProcessData(processes=records),
        )
    fact = context.facts.process
    # By the id that policy judged, since the given start of an id may be that of another one by now.
    found = background.sessions.find(fact.id if fact is not None else arguments.session_id or "")
    return _ACTIONS[arguments.action](found, context, arguments, background)


def _render_row(record: ProcessRecord) -> str:
    ports = "".join(f" :{port}" for port in record.ports)
    last = f"  | {record.last_line[:_MAX_SHOWN_CHARS]}" if record.last_line else ""
    state, command = record.describe_state(), record.command[:_MAX_SHOWN_CHARS]
    return f"{record.id}  {state}  {record.format_run_time(datetime.now(UTC))}{ports}  {command}{last}"


def _poll(found: "ProcessSession", context: CommandContext, _: ProcessArguments, background: Background) -> Output:
    from handrail.tools.process_output import poll  # noqa: PLC0415  engine room

    news = poll(found, max(1_000, context.limits.characters - _STATE_ROOM_CHARS), context.cancelled)
    record = found.record()
    if record.state != "running":
        background.announce_end(found)
        record = found.record()
    skipped = f"[{news.skipped:,} bytes before this are not kept]\n" if news.skipped else ""
    more = f"; {news.waiting:,} more bytes are available: poll again, or log with offset -200 for the end"
    text = news.text if not news.text or news.text.endswith("\n") else f"{news.text}\n"
    return Output(
        summary=f"{len(news.text):,} characters; {record.describe(datetime.now(UTC))}",
        content=f"{skipped}{text}[{record.describe(datetime.now(UTC))}{more if news.waiting else ''}]\n",
        data=ProcessData(process=record, output=news.text, skipped=news.skipped, waiting=news.waiting),
        truncated=news.waiting > 0,
    )


def _log(found: "ProcessSession", context: CommandContext, arguments: ProcessArguments, _: Background) -> Output:
    from handrail.tools.process_output import read_log_page  # noqa: PLC0415  engine room

    offset = 1 if arguments.offset is None else arguments.offset
    page = read_log_page(found.log, offset, arguments.limit or _DEFAULT_LOG_ROWS, context.limits.characters)
    record, total = found.record(), page.total or 0
    if offset > max(total, 1):
        message = f"offset {offset} is after the end of the log, which has {total} lines."
        raise ToolError("INVALID_ARGUMENT", f"{message} Use offset -200 for its end.")
    last = page.first + page.returned - 1
    lines = f"lines {page.first}–{last} of {total}" if page.returned else "nothing was printed"
    return Output(
        summary=f"{lines}; {record.describe(datetime.now(UTC))}",
        content=page.content,
        data=ProcessData(process=record, output=page.content, first_line=page.first),
        truncated=page.next_offset is not None,
        meta={"returned": page.returned, "total": total, "next_offset": page.next_offset},
        warnings=(f"{record.describe_dropped()}.",) if record.dropped else (),
    )


def _write(found: "ProcessSession", _: CommandContext, arguments: ProcessArguments, __: Background) -> Output:
    written = (arguments.data or "").encode()
    found.write(written, eof=arguments.eof)
    end = " and closed the input" if arguments.eof else ""
    summary = f"{len(written):,} bytes{end} were written to {found.id}."
    data = ProcessData(process=found.record())
    return Output(summary=summary, content=f"{summary} Poll for the answer.\n", data=data)


def _kill(found: "ProcessSession", _: CommandContext, __: ProcessArguments, background: Background) -> Output:
    if found.wait(0):
        summary = f"{found.id} had ended before: {found.record().describe(datetime.now(UTC))}."
    else:
        found.stop()
        summary = f"{found.id} was stopped with all its child processes. Its log stays until you remove it."
    background.announce_end(found)
    return Output(summary=summary, content=f"{summary}\n", data=ProcessData(process=found.record()))


def _clear(found: "ProcessSession", _: CommandContext, __: ProcessArguments, ___: Background) -> Output:
    before = found.record().dropped
    found.log.clear()
    record = found.record()
    summary = f"The log of {found.id} was cleared: {record.dropped - before:,} bytes."
    return Output(summary=summary, content=f"{summary}\n", data=ProcessData(process=record))


def _remove(found: "ProcessSession", _: CommandContext, __: ProcessArguments, background: Background) -> Output:
    record = found.record()
    background.forget(found)
    ended = "stopped with all its child processes, and " if record.state == "running" else ""
    summary = f"{found.id} was {ended}removed with its log."
    return Output(summary=summary, content=f"{summary}\n", data=ProcessData(process=record))


_ACTIONS: "dict[Action, Callable[[ProcessSession, CommandContext, ProcessArguments, Background], Output]]" = {
    "poll": _poll,
    "log": _log,
    "write": _write,
    "kill": _kill,
    "clear": _clear,
    "remove": _remove,
}
