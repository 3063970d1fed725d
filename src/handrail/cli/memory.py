"""memory: the notes that models made about a workspace."""

import os
from argparse import Namespace

from handrail.cli.context import open_state_folder, resolve_workspace
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.format import format_time
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.protocol.records import Memory, list_matching_ids
from handrail.protocol.text import quote_text, truncate
from handrail.protocol.wire import encode
from handrail.store.memories import Memories

SCHEMA = "handrail.memory/1"


def run(options: Namespace) -> int:
    """Lists the notes, those that were changed last at the end."""
    notes = open_memories(options).list_notes()
    if options.json:
        print_json(encode({"schema": SCHEMA, "notes": notes}))
    elif notes:
        rows = [(one.id, format_time(one.time), str(len(one.content)), truncate(one.title, 80)) for one in notes]
        print_out(render_table([("id", "changed", "characters", "title"), *rows]))
        print_note(
            f"to read one: handrail memory show {notes[0].id}; to remove it: handrail memory remove {notes[0].id}"
        )
    else:
        print_note('there are no notes about this workspace; [tools] enable = ["memory"] lets models make some')
    return OK


def open_memories(options: Namespace) -> Memories:
    """The notes about the workspace that was named, or about the current folder."""
    return Memories(open_state_folder().memories(os.path.realpath(resolve_workspace(options))))


def resolve_note(options: Namespace, memories: Memories) -> Memory:
    """The note that an id, or the beginning of one, means."""
    notes = {one.id: one for one in memories.list_notes()}
    ids = list_matching_ids(options.id, notes)
    if len(ids) == 1:
        return notes[ids[0]]
    spelled = quote_text(options.id, 40)
    if ids:
        raise CommandFailed(f"{spelled} could be {', '.join(ids)}. Nothing was done. Say more of the id.")
    raise CommandFailed(
        f"there is no note {spelled} here. Nothing was done. handrail memory lists those that are.", FAILED
    )
