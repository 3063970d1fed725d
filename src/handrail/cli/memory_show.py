"""memory show: one note, whole."""

from argparse import Namespace

from handrail.cli.event_row import when
from handrail.cli.exits import OK
from handrail.cli.memory import SCHEMA, found_note, memories_of
from handrail.cli.output import answer, answer_json, note
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Prints the note as it is."""
    found = found_note(options, memories_of(options))
    if options.json:
        answer_json(encode({"schema": SCHEMA, "notes": (found,)}))
        return OK
    answer(f"{found.title}\n\n{found.content.rstrip()}\n")
    note(f"{found.id}, {when(found.time)}, by a model in session {found.session_id}")
    return OK
