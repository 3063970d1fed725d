"""sessions remove: sessions with their journals, files and stored outputs."""

import os
from argparse import Namespace

from handrail.cli.context import open_state_folder, resolve_session_folder
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.output import print_json, print_note, print_out
from handrail.cli.session_list import SCHEMA, build_session_row, list_usage
from handrail.protocol.records import SessionState, SessionUsage
from handrail.protocol.wire import encode

_WHY: dict[SessionState, str] = {
    "running": "another process has it open",
    "background": "a background process of it runs; handrail processes stop --all ends it",
    "waiting": "a request or question of it waits; answer it, or add --force",
}


def run(options: Namespace) -> int:
    """Removes one session, or all that were not used for a while."""
    if (options.id is None) == (options.older_than is None):
        raise CommandFailed("name one session, or say --older-than 90d. Nothing was removed.")
    state, chosen = open_state_folder(), _chosen(options)
    states: tuple[SessionState, ...] = ("idle", "unreadable", "waiting") if options.force else ("idle", "unreadable")
    kept = {one.folder: _WHY[why] for one in chosen if (why := state.remove_session(one.folder, states)) not in states}
    rows = {one.folder: build_session_row(one) for one in chosen}
    removed = [row for folder, row in rows.items() if folder not in kept]
    if removed:
        state.remove_outputs()
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


def _chosen(options: Namespace) -> list[SessionUsage]:
    if options.id is not None:
        return open_state_folder().list_usage([resolve_session_folder(options, options.id)])
    return [one for one in list_usage(options) if one.last < options.older_than]
