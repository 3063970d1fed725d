"""Does what process is asked for."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.protocol.errors import ToolError
from handrail.protocol.records import ProcessRecord
from handrail.tools.contract import Background, CommandContext, Output
from handrail.tools.log_pages import read_log_page
from handrail.tools.polling import poll
from handrail.tools.process import Action, ProcessArguments, ProcessData
from handrail.tools.process_words import describe_dropped_log, describe_process, describe_state, format_run_time

if TYPE_CHECKING:
    from handrail.process.sessions.session import ProcessSession

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
