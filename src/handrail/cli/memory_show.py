"""memory show: one note, whole."""

from argparse import Namespace

from handrail.cli.exits import OK
from handrail.cli.format import format_time
from handrail.cli.memory import SCHEMA, open_memories, resolve_note
from handrail.cli.output import print_json, print_note, print_out
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Prints the note as it is."""
    found = resolve_note(options, open_memories(options))
    if options.json:
        print_json(encode({"schema": SCHEMA, "notes": (found,)}))
        return OK
    print_out(f"{found.title}\n\n{found.content.rstrip()}\n")
    print_note(f"{found.id}, {format_time(found.time)}, by a model in session {found.session_id}")
    return OK
