"""sessions remove: sessions with their journals, files and stored outputs."""

import os
from argparse import Namespace

from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.output import print_json, print_note, print_out
from handrail.cli.session_list import SCHEMA, build_session_row, list_session_folders
from handrail.cli.sessions import open_state_folder, resolve_session_folder
from handrail.protocol.wire import encode
from handrail.store.sessions import Use, read_last_use, remove_outputs, remove_session

_WHY: dict[Use, str] = {
    "running": "another process has it open",
    "background": "a background process of it runs; handrail processes stop --all ends it",
    "waiting": "a request or question of it waits; answer it, or add --force",
}


def run(options: Namespace) -> int:
    """Removes one session, or all that were not used for a while."""
    if (options.id is None) == (options.older_than is None):
        raise CommandFailed("name one session, or say --older-than 90d. Nothing was removed.")
    chosen = [resolve_session_folder(options, options.id)] if options.id is not None else _old(options)
    rows = {folder: build_session_row(folder) for folder in chosen}
    uses: tuple[Use, ...] = ("idle", "unreadable", "waiting") if options.force else ("idle", "unreadable")
    kept = {folder: _WHY[use] for folder in chosen if (use := remove_session(folder, uses)) not in uses}
    removed = [row for folder, row in rows.items() if folder not in kept]
    if removed:
        remove_outputs(open_state_folder())
    if options.json:
        left = [{**rows[folder], "reason": why} for folder, why in kept.items()]
        print_json(encode({"schema": SCHEMA, "removed": removed, "kept": left}))
    else:
        print_out("".join(f"removed {row['id']}\n" for row in removed))
        for folder, why in kept.items():
            print_note(f"{os.path.basename(folder)} was not removed: {why}")
        if not chosen:
            print_note("no session is that old; nothing was removed")
    return FAILED if kept and options.id is not None else OK


def _old(options: Namespace) -> list[str]:
    return [
        folder for folder in list_session_folders(options) if read_last_use(folder) < options.older_than.timestamp()
    ]
