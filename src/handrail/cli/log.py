"""log: the events of a session."""

import os
import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from handrail.cli.event_row import event_row, when
from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, answer_pieces, cut, note, one_line, table, warn
from handrail.cli.place import workspace_of
from handrail.cli.sessions import folder_of_session, sessions, state_of_here
from handrail.protocol.error import StoreError
from handrail.protocol.event import AnyEvent, Event
from handrail.protocol.wire import encode
from handrail.store.archive import Kept, kept_sessions, reading
from handrail.store.journal import Broken
from handrail.store.messages import Messages


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
    with reading(folder) as journal:
        last = journal.last_seq()
        after = max(0, last - options.limit) if options.after is None else options.after
        events = (event for _, event in zip(range(options.limit), journal.events(after), strict=False))
        if options.json:
            body = {"schema": "handrail.log/1", "session": os.path.basename(folder), "lastSeq": last}
            answer_pieces(_json(body, events))
            return OK
        found = list(events)
    if found:
        answer(table([("seq", "time", "kind", "what"), *map(event_row, found)]))
    _print_notes(options, found, last)
    return OK


def _json(body: Mapping[str, object], found: Iterable[Event | Broken]) -> Iterator[bytes]:
    """One object on a line, an event at a time: a journal may be larger than the memory."""
    broken: list[Broken] = []
    start = encode(body)[:-1] + b',"events":['
    for event in found:
        if isinstance(event, Broken):
            broken.append(event)
        else:
            yield start + encode(event)
            start = b","
    yield b'%b],"broken":%b}\n' % (start.removeprefix(b","), encode(broken))


def _folder(options: Namespace) -> str:
    """Of the session that was named, else of the one in which something happened last."""
    workspace = os.path.realpath(workspace_of(options))
    found = kept_sessions(state_of_here(), workspace) if options.session is None else []
    if not found:
        return folder_of_session(workspace, options.session or "cli")
    _warn(found[1:])
    folders = [os.path.join(state_of_here().home(workspace), one.id) for one in found]
    if len(folders) > 1 and not options.json:
        note(f"session: {os.path.basename(folders[0])} (the last one; handrail log --sessions lists them)")
    return folders[0]


def _warn(found: list[Kept]) -> None:
    """Of the sessions that cannot be read; the others are shown."""
    for one in found:
        if one.problem is not None:
            warn(f"warning: {one.problem}")


def _print_notes(options: Namespace, found: list[AnyEvent | Broken], last: int) -> None:
    for event in (event for event in found if isinstance(event, Broken)):
        warn(f"event {event.seq} cannot be read: {event.problem}")
    which = f"--session {shlex.quote(options.session)} " if options.session is not None else ""
    if not found:
        note(f"no event after {options.after or 0}; the last is {last}")
    elif found[-1].seq < last:
        note(f"{last - found[-1].seq} more: handrail log {which}--after {found[-1].seq}")
    elif found[0].seq > 1 and options.after is None:
        note(f"the last {len(found)} of {last}; from the beginning: handrail log {which}--after 0")


def _print_sessions(options: Namespace) -> int:
    found = sessions(options)
    _warn(found)
    if options.json:
        answer_json(encode({"schema": "handrail.log/1", "sessions": found}))
    elif found:
        prompts = _prompts(found, os.path.realpath(options.workspace or "."))
        rows = [
            (one.id, "unreadable" if one.problem else str(one.events), when(one.last) if one.last else "–", said)
            for one, said in zip(found, prompts, strict=True)
        ]
        answer(table([("session", "events", "last", "begun with"), *rows]))
    else:
        note("this workspace has no session yet")
    return OK


def _prompts(found: list[Kept], workspace: str) -> list[str]:
    """What the person said first in each; nothing where no model was talked to, or nobody can read it."""
    home = state_of_here().home(workspace)
    return [_prompt(os.path.join(home, one.id)) for one in found]


def _prompt(folder: str) -> str:
    with suppress(StoreError), reading(folder) as journal:
        return cut(one_line(Messages(journal).first_prompt() or ""), 60)
    return ""
