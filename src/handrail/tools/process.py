"""The tool process."""

import codecs
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from handrail.process.output import Cleaner, clean_output, count_unfinished_escape
from handrail.protocol.arguments import build_argument_error
from handrail.protocol.errors import Problem, ToolError
from handrail.protocol.permissions import Preview
from handrail.protocol.records import ProcessRecord
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.tool import Background, CommandContext, Output, ProcessUse, Tool, Touches
from handrail.workspace.pages import MAX_LINE_CHARACTERS, TextPage, split_rows

if TYPE_CHECKING:
    from handrail.process.sessions.sessions import ProcessSession
    from handrail.process.sessions.store import ProcessLog


# § [tools.process] process: what a session's commands do that go on after their calls, and what they are told.

Action = Literal["list", "poll", "log", "write", "kill", "clear", "remove"]
MAX_LOG_ROWS = 10_000
_MAX_WRITTEN_BYTES = 100_000
"""Of what is written at once: a person may have to read it."""


class ProcessArguments(Arguments, frozen=True):
    """The arguments of process."""

    action: Annotated[
        Action,
        Meta(
            description="list all; poll: output since the last poll; log: pages of all output; write to its input; "
            "kill it; clear its log; remove: end and forget it."
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
        Meta(description="log: most lines; 2000 if not given.", extra={"default": 2_000, "unit": "lines"}),
    ] = None
    data: Annotated[str | None, Meta(description="write: what to send; end a line with a newline.")] = None
    eof: Annotated[bool, Meta(description="write: end the input after the data.")] = False


class ProcessData(Wire, frozen=True):
    """What there is, or what came of it."""

    processes: tuple[ProcessRecord, ...] | None = None
    """list: all of them, the oldest first."""
    process: ProcessRecord | None = None
    """The one that the call was about, as it is afterwards; as it was before, where it is removed."""
    output: str | None = None
    """poll: what it has printed since the last poll; log: a page."""
    first_line: int | None = None
    """log: the line that the page begins with."""
    skipped: int = 0
    """poll: bytes before these that are not kept any more."""
    waiting: int = 0
    """poll: bytes behind these that the next poll gives."""


PROCESS = ToolSpec(
    name="process",
    title="Process",
    description=(
        "Look after commands that go on in the background (process sessions): list them, read what they print, write "
        "to their input, end them. Start one with exec (background or yieldMs)."
    ),
    arguments=ProcessArguments,
    data=ProcessData,
    permissions=("proc.exec",),
    side_effects=("processes",),
    plain_arguments=("action", "sessionId"),
    layer="base",
    stage="run",
    intent="look after a command that goes on in the background",
)


def build_process_tool(background: "Background") -> Tool:
    """The tool process. What it is done with is loaded on first use."""

    def run(context: CommandContext, arguments: ProcessArguments) -> Output:

        return run_process_action(context, arguments, background)

    return Tool(PROCESS, run, _touches, _preview, context=CommandContext)


def _touches(arguments: ProcessArguments) -> Touches:
    if problems := tuple(_problems(arguments)):
        raise build_argument_error(PROCESS, problems)
    data = arguments.data
    if data is not None and (size := len(data.encode("utf-8", "surrogatepass"))) > _MAX_WRITTEN_BYTES:
        message = (
            f"process: data is {size:,} bytes long, and {_MAX_WRITTEN_BYTES:,} is the most that is written at once."
        )
        raise ToolError("LIMIT_EXCEEDED", f"{message} Nothing was written. Write it in parts.")
    return Touches(process=ProcessUse(arguments.action, arguments.session_id or ""))


def _problems(arguments: ProcessArguments) -> list[Problem]:
    """What does not go together, all at once."""
    action, found = arguments.action, list[Problem]()
    if action == "list" and arguments.session_id is not None:
        found.append(Problem(field="sessionId", problem="sessionId is not for list, which names all"))
    if action != "list" and arguments.session_id is None:
        found.append(Problem(field="sessionId", problem=f"sessionId is required for {action}; list has the ids"))
    if action != "log":
        given = {"offset": arguments.offset, "limit": arguments.limit}
        found += [Problem(field=name, problem=f"{name} is for log only") for name in given if given[name] is not None]
    elif arguments.offset == 0:
        found.append(Problem(field="offset", problem="offset is 0; lines count from 1, and from -1 backwards"))
    if action == "write" and not arguments.data and not arguments.eof:
        found.append(Problem(field="data", problem="write needs data, or eof"))
    if action != "write":
        given = {"data": arguments.data is not None, "eof": arguments.eof}
        found += [Problem(field=name, problem=f"{name} is for write only") for name in given if given[name]]
    return found


def _preview(_: CommandContext, arguments: ProcessArguments) -> Preview:
    """What would be written, for the person who is asked."""
    end = "(and the end of its input)" if arguments.eof else ""
    return Preview(kind="input", text="\n".join(filter(None, (arguments.data, end))))


# § [tools.log_pages] Pages of what a process session has printed: rows of cleaned text, so that pages joined are
# § the log. Cleaning a text takes its time and keeps every newline. So rows are counted in the bytes where no line
# § can be more than one row, and only what is on the page is cleaned.

_PIECE_BYTES = 1 << 18
_MAX_CARRY_BYTES = 1 << 20
"""Bytes of a line that are kept until its newline comes."""


def read_log_page(log: "ProcessLog", offset: int, limit: int, budget: int) -> TextPage:
    """The page at a row, or at a row counted from the end; `returned` is 0 where there are fewer."""
    start = offset - 1 if offset > 0 else max(0, sum(block.size for block in _blocks(log)) + offset)
    taken: list[str] = []
    used = total = 0
    full = False
    for block in _blocks(log):
        first = max(0, start + len(taken) - total)
        total += block.size
        if full or first >= block.size:
            continue
        for row in block.rows()[first : first + limit - len(taken)]:
            used += len(row)
            full = bool(taken) and used > budget
            if full:
                break
            taken.append(row)
        full = full or len(taken) >= limit
    end = start + len(taken)
    return TextPage("".join(taken), start + 1, len(taken), total, end + 1 if end < total else None)


class _Block(NamedTuple):
    """Some rows; those of whole short lines are made when they are needed."""

    size: int
    lines: bytes = b""
    made: tuple[str, ...] = ()

    def rows(self) -> list[str]:
        return split_rows(clean_output(self.lines)) if self.lines else list(self.made)


def _blocks(log: "ProcessLog") -> Iterator[_Block]:
    """All rows, some at a time. A last row that may go on begins where a row begins, so it can be split again there."""
    cleaner, rest, within_line = Cleaner(), "", False
    for part in _parts(log):
        if not within_line and isinstance(part, bytes) and _has_short_lines(part):
            yield _Block(part.count(b"\n"), lines=part)
            continue
        within_line = isinstance(part, bytes) and not part.endswith(b"\n")
        text = cleaner.feed(part) if isinstance(part, bytes) else f"{cleaner.end()}\n{part}\n"
        rows = split_rows(rest + text)
        rest = rows.pop() if rows and not rows[-1].endswith("\n") else ""
        yield _Block(len(rows), made=tuple(rows))
    rows = split_rows(rest + cleaner.end())
    yield _Block(len(rows), made=tuple(rows))


def _has_short_lines(part: bytes) -> bool:
    """Whether it is whole lines, each of which is one row."""
    return part.endswith(b"\n") and max(map(len, part.split(b"\n"))) <= MAX_LINE_CHARACTERS


def _parts(log: "ProcessLog") -> Iterator[bytes | str]:
    """What is kept by now, whole lines at a time where they are not too long; a text in the place of what is not."""
    carry, position, size = b"", 0, log.size
    while position < size:
        start, data = log.read_from(position, min(_PIECE_BYTES, size - position))
        data = data[: max(0, size - start)]
        if not data:
            break
        if 0 < position < start:
            yield carry
            yield f"… {start - position:,} bytes are not kept …"
            carry = b""
        position = start + len(data)
        lines, newline, carry = (carry + data).rpartition(b"\n")
        if newline:
            yield lines + newline
        if len(carry) > _MAX_CARRY_BYTES:
            yield carry
            carry = b""
    if carry:
        yield carry


# § [tools.polling] What a process session has printed since somebody last asked: every byte once, in its order.

_NAME = "polled"
_WAIT_SECONDS = 1.0
_PAUSE_SECONDS = 0.02
_DIGITS = 20


class NewOutput(msgspec.Struct, frozen=True):
    """A piece of what was printed."""

    text: str
    start: int
    end: int
    """Where it begins and ends, in bytes from the beginning of all that was printed."""
    skipped: int
    """Bytes before it that are not kept any more."""
    waiting: int
    """Bytes behind it that were there already."""


def poll(process: "ProcessSession", room: int, cancelled: Callable[[], bool]) -> NewOutput:
    """What is new, at most so many bytes, and remembers it as told. Where nothing is and it runs, waits a little."""
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        news, ended = _look(process, room)
        if news.end > news.start or news.skipped or ended or cancelled() or time.monotonic() >= until:
            _mark(process, news.end)
            return news
        time.sleep(_PAUSE_SECONDS)


def take_new_output(process: "ProcessSession", room: int) -> NewOutput:
    """The same without waiting."""
    news, _ = _look(process, room)
    _mark(process, news.end)
    return news


def _mark(process: "ProcessSession", position: int) -> None:
    """Remembers how far it was told, for whoever polls next in whatever runtime."""
    descriptor = os.open(os.path.join(process.folder, _NAME), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, f"{position:0{_DIGITS}}".encode(), 0)
    finally:
        os.close(descriptor)


def _polled(process: "ProcessSession") -> int:
    with contextlib.suppress(OSError, ValueError), open(os.path.join(process.folder, _NAME), "rb") as file:
        return int(file.read(_DIGITS))
    return 0


def _look(process: "ProcessSession", room: int) -> tuple[NewOutput, bool]:
    """What is new, and whether nothing comes any more."""
    ended = process.wait(0)  # first: what it has printed when it has ended is all
    polled = _polled(process)
    start, data = process.log.read_from(polled, room)
    size = process.log.size
    if not ended or start + len(data) < size:
        data = data[: _whole(data, full=len(data) >= room)]
    end = start + len(data)
    return NewOutput(clean_output(data), start, end, start - polled, max(0, size - end)), ended


def _whole(data: bytes, *, full: bool) -> int:
    """How much of it is whole characters and sequences, which may go on in what follows; of very much, whole lines."""
    if full and (line := data.rfind(b"\n") + 1) > len(data) // 2:
        return line
    text, used = codecs.utf_8_decode(data, "replace", False)
    held = count_unfinished_escape(text)
    whole = max(0, used - len(text[len(text) - held :].encode())) if held else used
    return whole if whole > 0 or not full else len(data)


# § [tools.process_words] A process session in words, for models and people alike.

_REASONS = {
    "stopped": "stopped",
    "idle": "ended: it printed nothing and nobody asked for it (limits.idle)",
    "session": "ended with its session",
    "memory": "ended: it used more memory than limits.memory",
    "processes": "ended: it had more processes than limits.processes",
    "disk": "ended: it wrote more than limits.preview",
}


def describe_state(record: ProcessRecord) -> str:
    """In a word or two: `running`, `exit 1`, `stopped`."""
    if record.state != "ended":
        return record.state
    if record.reason is not None:
        return record.reason
    return record.signal or f"exit {record.exit_code}"


def describe_process(record: ProcessRecord) -> str:
    """In a sentence's worth of words."""
    return f"{_how_it_is(record)}; {record.changed}" if record.changed else _how_it_is(record)


def _how_it_is(record: ProcessRecord) -> str:
    if record.state == "running":
        ports = f", listens on port {', '.join(map(str, record.ports))} of its own network" if record.ports else ""
        return f"running for {format_run_time(record)}{ports}"
    if record.state == "lost":
        return "gone: what kept it was killed, and nobody knows how it ended"
    if record.reason is not None:
        return _REASONS.get(record.reason, f"ended: {record.reason}")
    by = f" ({record.signal})" if record.signal else ""
    return f"exit code {record.exit_code}{by}"


def describe_dropped_log(record: ProcessRecord) -> str:
    """Of a log of which something was dropped."""
    return f"{record.dropped:,} bytes are not kept: the log is the first 64 KB and the last 64 MB"


def format_run_time(record: ProcessRecord, now: datetime | None = None) -> str:
    """How long a process has run, as a clock shows it: `02:14`, `1:02:14`, `3 d 01:02`."""
    until = record.ended or now or datetime.now(UTC)
    seconds = max(0, int((until - record.started).total_seconds()))
    minutes, hours, days = seconds // 60 % 60, seconds // 3600 % 24, seconds // 86400
    if days:
        return f"{days} d {hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes:02}:{seconds % 60:02}"


# § [tools.processing] Does what process is asked for.

_ROWS = 2_000
_STATE_ROOM_CHARS = 300
"""Characters of the result that say how it is."""
_MAX_SHOWN_CHARS = 200
"""Characters of a command or a last line in a list."""


def run_process_action(context: CommandContext, arguments: ProcessArguments, background: Background) -> Output:
    """Does it."""
    if arguments.action == "list":
        return _list(background)
    fact = context.facts.process
    # The one that was judged, not what the beginning of an id leads to by now.
    found = background.sessions.find(fact.id if fact is not None else arguments.session_id or "")
    return _ACTIONS[arguments.action](found, context, arguments, background)


def _list(background: Background) -> Output:
    records = background.sessions.records()
    running = sum(record.state == "running" for record in records)
    content = "".join(f"{_row(record)}\n" for record in records) or "Nothing is running, and nothing has ended.\n"
    return Output(
        summary=f"{running} running, {len(records) - running} ended",
        content=content,
        data=ProcessData(processes=records),
    )


def _row(record: ProcessRecord) -> str:
    ports = "".join(f" :{port}" for port in record.ports)
    last = f"  | {record.last_line[:_MAX_SHOWN_CHARS]}" if record.last_line else ""
    state, command = describe_state(record), record.command[:_MAX_SHOWN_CHARS]
    return f"{record.id}  {state}  {format_run_time(record)}{ports}  {command}{last}"


def _poll(found: "ProcessSession", context: CommandContext, _: ProcessArguments, background: Background) -> Output:
    news = poll(found, max(1_000, context.limits.characters - _STATE_ROOM_CHARS), context.cancelled)
    record = found.record()
    if record.state != "running":
        background.announce_end(found)
        record = found.record()
    skipped = f"[{news.skipped:,} bytes before this are not kept]\n" if news.skipped else ""
    more = f"; {news.waiting:,} bytes more are there: poll again, or log with offset -200 for the end"
    text = news.text if not news.text or news.text.endswith("\n") else f"{news.text}\n"
    return Output(
        summary=f"{len(news.text):,} characters; {describe_process(record)}",
        content=f"{skipped}{text}[{describe_process(record)}{more if news.waiting else ''}]\n",
        data=ProcessData(process=record, output=news.text, skipped=news.skipped, waiting=news.waiting),
        truncated=news.waiting > 0,
    )


def _log(found: "ProcessSession", context: CommandContext, arguments: ProcessArguments, _: Background) -> Output:
    offset = 1 if arguments.offset is None else arguments.offset
    page = read_log_page(found.log, offset, arguments.limit or _ROWS, context.limits.characters)
    record, total = found.record(), page.total or 0
    if offset > max(total, 1):
        message = f"offset {offset} is past the end of the log, which has {total} lines."
        raise ToolError("INVALID_ARGUMENT", f"{message} Ask from -200 for its end.")
    last = page.first + page.returned - 1
    lines = f"lines {page.first}–{last} of {total}" if page.returned else "nothing was printed"
    return Output(
        summary=f"{lines}; {describe_process(record)}",
        content=page.content,
        data=ProcessData(process=record, output=page.content, first_line=page.first),
        truncated=page.next_offset is not None,
        meta={"returned": page.returned, "total": total, "next_offset": page.next_offset},
        warnings=(f"{describe_dropped_log(record)}.",) if record.dropped else (),
    )


def _write(found: "ProcessSession", _: CommandContext, arguments: ProcessArguments, __: Background) -> Output:
    data = (arguments.data or "").encode()
    found.write(data, eof=arguments.eof)
    end = " and the end of its input" if arguments.eof else ""
    said = f"{len(data):,} bytes{end} were written to {found.id}."
    return Output(summary=said, content=f"{said} Poll it for its answer.\n", data=ProcessData(process=found.record()))


def _kill(found: "ProcessSession", _: CommandContext, __: ProcessArguments, background: Background) -> Output:
    if found.wait(0):
        said = f"{found.id} had ended before: {describe_process(found.record())}."
    else:
        found.stop()
        said = f"{found.id} was ended with all that it had started. Its log stays until it is removed."
    background.announce_end(found)
    return Output(summary=said, content=f"{said}\n", data=ProcessData(process=found.record()))


def _clear(found: "ProcessSession", _: CommandContext, __: ProcessArguments, ___: Background) -> Output:
    before = found.record().dropped
    found.log.clear()
    record = found.record()
    said = f"The log of {found.id} was cleared: {record.dropped - before:,} bytes."
    return Output(summary=said, content=f"{said}\n", data=ProcessData(process=record))


def _remove(found: "ProcessSession", _: CommandContext, __: ProcessArguments, background: Background) -> Output:
    record = found.record()
    background.forget(found)
    ended = "ended with all that it had started, and " if record.state == "running" else ""
    said = f"{found.id} was {ended}removed with its log."
    return Output(summary=said, content=f"{said}\n", data=ProcessData(process=record))


_ACTIONS: "dict[Action, Callable[[ProcessSession, CommandContext, ProcessArguments, Background], Output]]" = {
    "poll": _poll,
    "log": _log,
    "write": _write,
    "kill": _kill,
    "clear": _clear,
    "remove": _remove,
}
