"""memory remove: no later session reads the note."""

from argparse import Namespace

from handrail.cli.exits import FAILED, OK, Stop
from handrail.cli.memory import SCHEMA, found_note, memories_of
from handrail.cli.output import answer, answer_json, one_line
from handrail.protocol.error import ToolError
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Removes the note for good."""
    memories = memories_of(options)
    found = found_note(options, memories)
    try:
        with memories.alone():
            memories.remove(found.id)
    except ToolError as error:
        raise Stop(f"{error.message} Nothing was removed.", FAILED) from None
    if options.json:
        answer_json(encode({"schema": SCHEMA, "removed": (found,)}))
    else:
        answer(f"removed {found.id}: {one_line(found.title)}\n")
    return OK
