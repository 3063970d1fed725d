"""handrail sessions: the stored sessions."""

import os
from argparse import ArgumentParser
from types import SimpleNamespace
from typing import Any

from handrail.cli.context import open_state_folder, resolve_session_folder, resolve_workspace
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.format import format_binary_size, format_time
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.cli.parser import Command, add_json_option, add_workspace_option
from handrail.cli.usage import parse_past_time
from handrail.protocol.records import SessionState, SessionUsage
from handrail.protocol.wire import encode

_SCHEMA = "handrail.sessions/1"
_KEPT: dict[SessionState, str] = {
    "running": "another process uses it",
    "background": "its background process still runs; handrail processes stop --all stops it",
    "waiting": "its request or question waits; answer it, or add --force",
}


def run(options: SimpleNamespace) -> int:
    """Lists the sessions of the workspace, or of all, the last used first."""
    found = sorted(_list_usage(options), key=lambda session: session.last, reverse=True)
    if options.json:
        print_json(encode({"schema": _SCHEMA, "sessions": [_build_data(session) for session in found]}))
    elif found:
        rows = [("session", "state", "size", "last used", "workspace")]
        rows += [
            (one.id, one.state, format_binary_size(one.bytes), format_time(one.last), one.workspace or "?")
            for one in found
        ]
        print_out(render_table(rows if options.all else [row[:-1] for row in rows]))
    else:
        print_note(
            "no session is stored" if options.all else "this workspace has no session yet; every workspace: --all"
        )
    return OK


def run_remove(options: SimpleNamespace) -> int:
    """Removes one session, or all that were not used for a while."""
    if (options.id is None) == (options.older_than is None):
        raise CommandFailed("name a session, or add --older-than 90d. Nothing was removed.", then="handrail sessions")
    state = open_state_folder()
    if options.id is not None:
        chosen = state.list_usage([resolve_session_folder(options, options.id)])
    else:
        chosen = [one for one in _list_usage(options) if one.last < options.older_than]
    states: tuple[SessionState, ...] = ("idle", "unreadable", "waiting") if options.force else ("idle", "unreadable")
    kept = {one.folder: _KEPT[why] for one in chosen if (why := state.remove_session(one.folder, states)) not in states}
    removed = [one for one in chosen if one.folder not in kept]
    if removed:
        state.remove_outputs()
    if options.json:
        left = [{**_build_data(one), "reason": kept[one.folder]} for one in chosen if one.folder in kept]
        print_json(encode({"schema": _SCHEMA, "removed": [_build_data(one) for one in removed], "kept": left}))
    else:
        print_out("".join(f"removed {one.id}\n" for one in removed))
        for folder, why in kept.items():
            print_note(f"{os.path.basename(folder)} was not removed: {why}")
        if not chosen:
            print_note("no session is that old; nothing was removed")
    return FAILED if kept and options.id is not None else OK


def _list_usage(options: SimpleNamespace) -> list[SessionUsage]:
    state = open_state_folder()
    return state.list_usage(state.sessions(None if options.all else os.path.realpath(resolve_workspace(options))))


def _build_data(session: SessionUsage) -> dict[str, Any]:
    return {name: getattr(session, name) for name in ("id", "workspace", "state", "bytes", "last")}


def _add_arguments(parser: ArgumentParser) -> None:
    add_workspace_option(parser)
    parser.add_argument("--all", action="store_true", help="of every workspace")
    add_json_option(parser)


def _add_remove_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="the session, or the beginning of its id")
    parser.add_argument(
        "--older-than", metavar="WHEN", type=parse_past_time, help="sessions not used for this long: 90d, 12h"
    )
    parser.add_argument("--force", action="store_true", help="also if a request or question waits")
    _add_arguments(parser)


COMMANDS = {
    "sessions": Command(run, _add_arguments, ("handrail sessions", "handrail sessions --all --json")),
    "sessions remove": Command(
        run_remove,
        _add_remove_arguments,
        ("handrail sessions remove s-7fq", "handrail sessions remove --older-than 90d --all"),
        {FAILED: "there is no such session, or it is in use; nothing was removed"},
    ),
}
