"""log export: a copy of a session's events as lines of JSON."""

import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from handrail.cli.exits import OK, CommandFailed
from handrail.cli.files import OutFolder
from handrail.cli.output import print_json, print_out, warn
from handrail.cli.sessions import resolve_session_folder
from handrail.protocol.events import BrokenEvent, Event
from handrail.protocol.text import render_value
from handrail.protocol.wire import encode
from handrail.state import build_export_path, open_journal


def _spelling(dialect: str | None) -> Callable[[Event], Iterator[bytes]]:
    """How an event is written: as one line of ours, or as what another system would be told of it."""
    if dialect is None:
        return lambda event: iter((encode(event) + b"\n",))
    from handrail.dialects import ADAPTERS  # noqa: PLC0415  few speak to other systems

    if dialect not in ADAPTERS:
        raise CommandFailed(f"there is no dialect {render_value(dialect)} for events; there are {', '.join(ADAPTERS)}")
    adapter = ADAPTERS[dialect]()
    return lambda event: (encode(one) + b"\n" for one in adapter.render(event))


def run(options: Namespace) -> int:
    """Writes every event that can be read to the file of its day; names the others."""
    folder = OutFolder(options.out)
    broken: list[BrokenEvent] = []
    written: dict[str, int] = {}

    spelled = _spelling(options.dialect)
    kept = resolve_session_folder(options, options.task)
    session = os.path.basename(kept)

    def lines(name: str, events: Iterable[Event | BrokenEvent]) -> Iterator[bytes]:
        for event in events:
            written[name] = written.get(name, 0) + 1
            yield from spelled(event) if isinstance(event, Event) else ()

    def file_of(event: Event | BrokenEvent) -> str | None:
        return build_export_path(session, event, options.dialect or "events") if isinstance(event, Event) else None

    with open_journal(kept) as journal:
        for name, events in groupby(journal.events(), file_of):
            if name is None:
                broken += [event for event in events if isinstance(event, BrokenEvent)]
            else:
                folder.add(name, lines(name, events))
    for event in broken:
        warn(f"event {event.seq} cannot be read and was left out: {event.problem}")
    if options.json:
        files = [{"file": os.path.join(options.out, name), "events": count} for name, count in written.items()]
        print_json(encode({"schema": "handrail.log/1", "session": session, "files": files, "broken": broken}))
    else:
        print_out("".join(f"{os.path.join(options.out, name)}  {count} events\n" for name, count in written.items()))
    return OK
