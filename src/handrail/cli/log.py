"""log: the events of a session."""

import os
import shlex
from argparse import Namespace
from contextlib import suppress

from handrail.cli.event_row import event_row, when
from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, cut, note, one_line, table, warn
from handrail.cli.place import workspace_of
from handrail.cli.sessions import folder_of_session, folders_of_sessions, sessions, state_of_here
from handrail.protocol.error import StoreError
from handrail.protocol.event import Event
from handrail.protocol.wire import encode
from handrail.store.archive import Kept, reading
from handrail.store.journal import Broken, Journal
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
        found = _some(journal, after, options.limit)
    events = [event for event in found if isinstance(event, Event)]
    broken = [event for event in found if isinstance(event, Broken)]
    if options.json:
        body = {"schema": "handrail.log/1", "session": os.path.basename(folder), "lastSeq": last}
        answer_json(encode({**body, "events": events, "broken": broken}))
        return OK
    if found:
        answer(table([("seq", "time", "kind", "what"), *map(event_row, found)]))
    _print_notes(options, found, broken, last)
    return OK


def _folder(options: Namespace) -> str:
    """Of the session that was named, else of the one in which something happened last."""
    workspace = os.path.realpath(workspace_of(options))
    folders = folders_of_sessions(workspace) if options.session is None else []
    if not folders:
        return folder_of_session(workspace, options.session or "cli")
    if len(folders) > 1 and not options.json:
        note(f"session: {os.path.basename(folders[0])} (the last one; handrail log --sessions lists them)")
    return folders[0]


def _some(journal: Journal, after: int, limit: int) -> list[Event | Broken]:
    return [event for _, event in zip(range(limit), journal.events(after), strict=False)]


def _print_notes(options: Namespace, found: list[Event | Broken], broken: list[Broken], last: int) -> None:
    for event in broken:
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
    if options.json:
        answer_json(encode({"schema": "handrail.log/1", "sessions": found}))
    elif found:
        prompts = _prompts(found, os.path.realpath(options.workspace or "."))
        rows = [
            (one.id, str(one.events), when(one.last) if one.last else "–", said)
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
    with reading(folder) as journal, suppress(StoreError):
        return cut(one_line(Messages(journal).first_prompt() or ""), 60)
    return ""
