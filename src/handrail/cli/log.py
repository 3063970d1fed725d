"""log: the events of a session."""

from argparse import Namespace

from handrail.cli.event_row import event_row, when
from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, note, table
from handrail.cli.sessions import session_folder, sessions
from handrail.protocol.event import Event
from handrail.protocol.wire import encode
from handrail.store.archive import reading
from handrail.store.journal import Broken, Journal


def run(options: Namespace) -> int:
    """Shows events, or the sessions there are."""
    if options.sessions:
        return _print_sessions(options)
    if options.changes:
        from handrail.cli.changes import print_changes  # noqa: PLC0415  it opens a session, reading events does not

        return print_changes(options)
    if options.line is not None:
        from handrail.cli.line_log import print_line  # noqa: PLC0415  as above

        return print_line(options)
    with reading(session_folder(options, options.session)) as journal:
        last = journal.last_seq()
        after = max(0, last - options.limit) if options.after is None else options.after
        found = _some(journal, after, options.limit)
    events = [event for event in found if isinstance(event, Event)]
    broken = [event for event in found if isinstance(event, Broken)]
    if options.json:
        body = {"schema": "handrail.log/1", "session": options.session, "lastSeq": last}
        answer_json(encode({**body, "events": events, "broken": broken}))
        return OK
    if found:
        answer(table([("seq", "time", "kind", "what"), *map(event_row, found)]))
    _print_notes(options, found, broken, last)
    return OK


def _some(journal: Journal, after: int, limit: int) -> list[Event | Broken]:
    return [event for _, event in zip(range(limit), journal.events(after), strict=False)]


def _print_notes(options: Namespace, found: list[Event | Broken], broken: list[Broken], last: int) -> None:
    for event in broken:
        note(f"event {event.seq} cannot be read: {event.problem}")
    if options.quiet:
        return
    if not found:
        note(f"no event after {options.after or 0}; the last is {last}")
    elif found[-1].seq < last:
        note(f"{last - found[-1].seq} more: handrail log --after {found[-1].seq}")
    elif found[0].seq > 1 and options.after is None:
        note(f"the last {len(found)} of {last}; from the beginning: handrail log --after 0")


def _print_sessions(options: Namespace) -> int:
    found = sessions(options)
    if options.json:
        answer_json(encode({"schema": "handrail.log/1", "sessions": found}))
    elif found:
        rows = [(one.id, str(one.events), when(one.last) if one.last else "–") for one in found]
        answer(table([("session", "events", "last"), *rows]))
    else:
        note("this workspace has no session yet")
    return OK
