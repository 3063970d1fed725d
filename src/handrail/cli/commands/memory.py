"""handrail memory: the notes that models made about a workspace."""

import os
from argparse import ArgumentParser
from types import SimpleNamespace

from handrail.cli.context import choose_id, open_state_folder, resolve_workspace
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.format import format_time
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.cli.parser import Command, add_place_options
from handrail.cli.usage import parse_nonempty_text
from handrail.protocol.errors import ToolError
from handrail.protocol.records import Memory
from handrail.protocol.text import render_value, to_one_line, truncate
from handrail.protocol.wire import encode

_SCHEMA = "handrail.memory/1"


def run(options: SimpleNamespace) -> int:
    notes = open_state_folder().list_memories(os.path.realpath(resolve_workspace(options)))
    if options.json:
        print_json(encode({"schema": _SCHEMA, "notes": notes}))
    elif notes:
        rows = [(one.id, format_time(one.time), str(len(one.content)), truncate(one.title, 80)) for one in notes]
        print_out(render_table([("id", "changed", "characters", "title"), *rows]))
        print_note(
            f"to read one: handrail memory show {notes[0].id}; to remove it: handrail memory remove {notes[0].id}"
        )
    else:
        print_note('no notes about this workspace; [tools] enable = ["memory"] lets models write notes')
    return OK


def run_show(options: SimpleNamespace) -> int:
    _, note = _find_note(options)
    if options.json:
        print_json(encode({"schema": _SCHEMA, "notes": (note,)}))
        return OK
    print_out(f"{note.title}\n\n{note.content.rstrip()}\n")
    print_note(f"{note.id}, {format_time(note.time)}, by a model in session {note.session_id}")
    return OK


def run_remove(options: SimpleNamespace) -> int:
    workspace, note = _find_note(options)
    try:
        open_state_folder().remove_memory(workspace, note.id)
    except ToolError as error:
        raise CommandFailed(f"{error.message} Nothing was removed.", FAILED, then="handrail memory") from None
    if options.json:
        print_json(encode({"schema": _SCHEMA, "removed": (note,)}))
    else:
        print_out(f"removed {note.id}: {to_one_line(note.title)}\n")
    return OK


def _find_note(options: SimpleNamespace) -> tuple[str, Memory]:
    """The real path of the workspace, and the note that an id or its beginning names."""
    workspace = os.path.realpath(resolve_workspace(options))
    notes = {one.id: one for one in open_state_folder().list_memories(workspace)}
    note = choose_id(options.id, {name: one.title for name, one in notes.items()}, "handrail memory")
    if note is not None:
        return workspace, notes[note]
    problem = f"there is no note {render_value(options.id)} here. Nothing was done."
    raise CommandFailed(problem, FAILED, then="handrail memory")


def _add_one_note_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the note, or the beginning of its id")
    add_place_options(parser)


COMMANDS = {
    "memory": Command(run, add_place_options, ("handrail memory", "handrail memory --json | jq '.notes[].title'")),
    "memory show": Command(
        run_show,
        _add_one_note_arguments,
        ("handrail memory show m-7fq2k", "handrail memory show m-7f --json"),
        {FAILED: "there is no such note"},
    ),
    "memory remove": Command(
        run_remove,
        _add_one_note_arguments,
        ("handrail memory remove m-7fq2k", "handrail memory remove m-7f --json"),
        {FAILED: "there is no such note, or it could not be removed"},
    ),
}
