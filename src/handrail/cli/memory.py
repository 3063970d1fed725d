"""memory: the notes that models made about a workspace."""

import os
from argparse import Namespace

from handrail.cli.event_row import when
from handrail.cli.exits import FAILED, OK, Stop
from handrail.cli.output import answer, answer_json, cut, note, table
from handrail.cli.place import workspace_of
from handrail.cli.sessions import state_of_here
from handrail.protocol.memory import Memory
from handrail.protocol.wire import encode
from handrail.store.memories import Memories
from handrail.store.short_ids import matching

SCHEMA = "handrail.memory/1"


def run(options: Namespace) -> int:
    """Lists the notes, those that were changed last at the end."""
    notes = memories_of(options).listed()
    if options.json:
        answer_json(encode({"schema": SCHEMA, "notes": notes}))
    elif notes:
        rows = [(one.id, when(one.time), str(len(one.content)), cut(one.title, 80)) for one in notes]
        answer(table([("id", "changed", "characters", "title"), *rows]))
        note(f"to read one: handrail memory show {notes[0].id}; to remove it: handrail memory remove {notes[0].id}")
    else:
        note('there are no notes about this workspace; [tools] enable = ["memory"] lets models make some')
    return OK


def memories_of(options: Namespace) -> Memories:
    """The notes about the workspace that was named, or about the current folder."""
    return Memories(state_of_here().memories(os.path.realpath(workspace_of(options))))


def found_note(options: Namespace, memories: Memories) -> Memory:
    """The note that an id, or the beginning of one, means."""
    notes = {one.id: one for one in memories.listed()}
    ids = matching(options.id, notes)
    if len(ids) == 1:
        return notes[ids[0]]
    spelled = repr(cut(options.id, 40))
    if ids:
        raise Stop(f"{spelled} could be {', '.join(ids)}. Nothing was done. Say more of the id.")
    raise Stop(f"there is no note {spelled} here. Nothing was done. handrail memory lists those that are.", FAILED)
