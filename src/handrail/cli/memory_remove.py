"""memory remove: no later session reads the note."""

from argparse import Namespace

from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.memory import SCHEMA, open_memories, resolve_note
from handrail.cli.output import print_json, print_out
from handrail.protocol.errors import ToolError
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Removes the note for good."""
    memories = open_memories(options)
    found = resolve_note(options, memories)
    try:
        with memories.lock():
            memories.remove(found.id)
    except ToolError as error:
        raise CommandFailed(f"{error.message} Nothing was removed.", FAILED) from None
    if options.json:
        print_json(encode({"schema": SCHEMA, "removed": (found,)}))
    else:
        print_out(f"removed {found.id}: {to_one_line(found.title)}\n")
    return OK
