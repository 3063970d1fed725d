"""log: the events of a session."""

import os
import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping

from handrail.cli.context import (
    list_workspace_sessions,
    open_state_folder,
    resolve_workspace,
    resolve_workspace_session,
)
from handrail.cli.exits import OK
from handrail.cli.format import build_event_row, format_time
from handrail.cli.output import print_json, print_json_pieces, print_note, print_out, render_table, warn
from handrail.protocol.events import AnyEvent, BrokenEvent, Event
from handrail.protocol.records import SessionInfo
from handrail.protocol.text import to_one_line, truncate
from handrail.protocol.wire import encode
from handrail.state import open_journal


def run(options: Namespace) -> int:
    """Shows events, or the sessions there are."""
    if options.sessions:
        return _print_sessions(options)
    if options.changes:
        from handrail.cli.commands.changes import print_changes  # noqa: PLC0415  it opens a session, reading events does not

        return print_changes(options)
    if options.line is not None:
        from handrail.cli.line_log import print_line  # noqa: PLC0415  as above

        return print_line(options)
    folder = _folder(options)
    with open_journal(folder) as journal:
        last = journal.last_seq()
        after = max(0, last - options.limit) if options.after is None else options.after
        events = (event for _, event in zip(range(options.limit), journal.events(after), strict=False))
        if options.json:
            body = {"schema": "handrail.log/1", "session": os.path.basename(folder), "lastSeq": last}
            print_json_pieces(_json(body, events))
            return OK
        found = list(events)
    if found:
        print_out(render_table([("seq", "time", "kind", "what"), *map(build_event_row, found)]))
    _print_notes(options, found, last)
    return OK


def _json(body: Mapping[str, object], found: Iterable[Event | BrokenEvent]) -> Iterator[bytes]:
    """One object on a line, an event at a time: a journal may be larger than the memory."""
    broken: list[BrokenEvent] = []
    start = encode(body)[:-1] + b',"events":['
    for event in found:
        if isinstance(event, BrokenEvent):
            broken.append(event)
        else:
            yield start + encode(event)
            start = b","
    yield b'%b],"broken":%b}\n' % (start.removeprefix(b","), encode(broken))


def _folder(options: Namespace) -> str:
    """Of the session that was named, else of the one in which something happened last."""
    workspace = os.path.realpath(resolve_workspace(options))
    found = open_state_folder().list_sessions(workspace) if options.session is None else []
    if not found:
        return resolve_workspace_session(workspace, options.session or "cli")
    _warn(found[1:])
    folders = [os.path.join(open_state_folder().home(workspace), one.id) for one in found]
    if len(folders) > 1 and not options.json:
        print_note(f"session: {os.path.basename(folders[0])} (the last one; handrail log --sessions lists them)")
    return folders[0]


def _warn(found: list[SessionInfo]) -> None:
    """Of the sessions that cannot be read; the others are shown."""
    for one in found:
        if one.problem is not None:
            warn(f"warning: {one.problem}")


def _print_notes(options: Namespace, found: list[AnyEvent | BrokenEvent], last: int) -> None:
    for event in (event for event in found if isinstance(event, BrokenEvent)):
        warn(f"event {event.seq} cannot be read: {event.problem}")
    which = f"--session {shlex.quote(options.session)} " if options.session is not None else ""
    if not found:
        print_note(f"no event after {options.after or 0}; the last is {last}")
    elif found[-1].seq < last:
        print_note(f"{last - found[-1].seq} more: handrail log {which}--after {found[-1].seq}")
    elif found[0].seq > 1 and options.after is None:
        print_note(f"the last {len(found)} of {last}; from the beginning: handrail log {which}--after 0")


def _print_sessions(options: Namespace) -> int:
    found = list_workspace_sessions(options)
    _warn(found)
    if options.json:
        print_json(encode({"schema": "handrail.log/1", "sessions": found}))
    elif found:
        talks = open_state_folder().list_conversations(os.path.realpath(options.workspace or "."))
        prompts = {talk.id: truncate(to_one_line(talk.prompt), 60) for talk in talks}
        rows = [(one.id, *_describe(one), prompts.get(one.id, "")) for one in found]
        print_out(render_table([("session", "events", "last", "begun with"), *rows]))
    else:
        print_note("this workspace has no session yet")
    return OK


def _describe(session: SessionInfo) -> tuple[str, str]:
    """Its number of events, and the time of the last one."""
    last = format_time(session.last) if session.last else "–"
    return "unreadable" if session.problem else str(session.events), last
