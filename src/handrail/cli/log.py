"""log: the events of a session."""

import os
import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from handrail.cli.event_row import build_event_row, format_time
from handrail.cli.exits import OK
from handrail.cli.output import print_json, print_json_pieces, print_note, print_out, render_table, warn
from handrail.cli.place import resolve_workspace
from handrail.cli.sessions import list_workspace_sessions, open_state_folder, resolve_workspace_session
from handrail.protocol.errors import StoreError
from handrail.protocol.events import AnyEvent, Event
from handrail.protocol.text import to_one_line, truncate
from handrail.protocol.wire import encode
from handrail.store.journal import BrokenEvent
from handrail.store.sessions import SessionInfo, list_stored_sessions, open_journal, open_messages


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
    found = list_stored_sessions(open_state_folder(), workspace) if options.session is None else []
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
        prompts = _prompts(found, os.path.realpath(options.workspace or "."))
        rows = [
            (one.id, "unreadable" if one.problem else str(one.events), format_time(one.last) if one.last else "–", said)
            for one, said in zip(found, prompts, strict=True)
        ]
        print_out(render_table([("session", "events", "last", "begun with"), *rows]))
    else:
        print_note("this workspace has no session yet")
    return OK


def _prompts(found: list[SessionInfo], workspace: str) -> list[str]:
    """What the person said first in each; nothing where no model was talked to, or nobody can read it."""
    home = open_state_folder().home(workspace)
    return [_prompt(os.path.join(home, one.id)) for one in found]


def _prompt(folder: str) -> str:
    with suppress(StoreError), open_messages(folder) as messages:
        return truncate(to_one_line(messages.first_prompt() or ""), 60)
    return ""
