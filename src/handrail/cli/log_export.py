"""log export: a copy of a session's events as lines of JSON."""

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator
from itertools import groupby

from handrail.cli.exits import OK
from handrail.cli.files import OutFolder
from handrail.cli.output import answer, answer_json, note
from handrail.cli.sessions import session_folder
from handrail.protocol.event import Event
from handrail.protocol.wire import encode
from handrail.runtime.event_lines import line_file
from handrail.store.archive import reading
from handrail.store.journal import Broken


def run(options: Namespace) -> int:
    """Writes every event that can be read to the file of its day; names the others."""
    folder = OutFolder(options.out)
    broken: list[Broken] = []
    written: dict[str, int] = {}

    def lines(name: str, events: Iterable[Event | Broken]) -> Iterator[bytes]:
        for event in events:
            written[name] = written.get(name, 0) + 1
            yield encode(event) + b"\n"

    def file_of(event: Event | Broken) -> str | None:
        return line_file(options.task, event) if isinstance(event, Event) else None

    with reading(session_folder(options, options.task)) as journal:
        for name, events in groupby(journal.events(), file_of):
            if name is None:
                broken += [event for event in events if isinstance(event, Broken)]
            else:
                folder.add(name, lines(name, events))
    for event in broken:
        note(f"event {event.seq} cannot be read and was left out: {event.problem}")
    if options.json:
        files = [{"file": os.path.join(options.out, name), "events": count} for name, count in written.items()]
        answer_json(encode({"schema": "handrail.log/1", "session": options.task, "files": files, "broken": broken}))
    else:
        answer("".join(f"{os.path.join(options.out, name)}  {count} events\n" for name, count in written.items()))
    return OK
