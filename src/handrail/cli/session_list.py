"""sessions: those that the state folder holds."""

import os
from argparse import Namespace
from typing import Any

from handrail.cli.context import open_state_folder, resolve_workspace
from handrail.cli.exits import OK
from handrail.cli.format import format_binary_size, format_time
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.protocol.records import SessionUsage
from handrail.protocol.wire import encode

SCHEMA = "handrail.sessions/1"


def run(options: Namespace) -> int:
    """Lists the sessions of the workspace, or of all, the one that was used last first."""
    usage = sorted(list_usage(options), key=lambda session: session.last, reverse=True)
    found = [build_session_row(session) for session in usage]
    if options.json:
        print_json(encode({"schema": SCHEMA, "sessions": found}))
    elif found:
        rows = [(row["id"], row["state"], format_binary_size(row["bytes"]), format_time(row["last"])) for row in found]
        places = [row["workspace"] or "?" for row in found]
        head = ("session", "state", "size", "last used", "workspace")
        wide = [head, *((*row, place) for row, place in zip(rows, places, strict=True))]
        print_out(render_table(wide if options.all else [head[:-1], *rows]))
    else:
        print_note(
            "no session is stored" if options.all else "this workspace has no session yet; every workspace: --all"
        )
    return OK


def list_usage(options: Namespace) -> list[SessionUsage]:
    """The sessions of the workspace, or of all."""
    state = open_state_folder()
    return state.list_usage(state.sessions(None if options.all else os.path.realpath(resolve_workspace(options))))


def build_session_row(session: SessionUsage) -> dict[str, Any]:
    """A session as JSON."""
    names = ("id", "workspace", "state", "bytes", "last")
    return {name: getattr(session, name) for name in names}
