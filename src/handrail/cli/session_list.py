"""sessions: those that the state folder holds."""

import os
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from handrail.cli.event_row import format_time
from handrail.cli.exits import OK
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.cli.place import resolve_workspace
from handrail.cli.rows import format_binary_size
from handrail.cli.sessions import open_state_folder
from handrail.protocol.wire import encode
from handrail.store.sessions import count_bytes, read_last_use, read_session_use
from handrail.store.state_dir import read_workspace_path

SCHEMA = "handrail.sessions/1"


def run(options: Namespace) -> int:
    """Lists the sessions of the workspace, or of all, the one that was used last first."""
    found = [
        build_session_row(folder) for folder in sorted(list_session_folders(options), key=read_last_use, reverse=True)
    ]
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


def list_session_folders(options: Namespace) -> list[str]:
    """The folders of the sessions of the workspace, or of all."""
    return open_state_folder().sessions(None if options.all else os.path.realpath(resolve_workspace(options)))


def build_session_row(folder: str) -> dict[str, Any]:
    """A session as JSON; its workspace is None if it is not recorded."""
    last = datetime.fromtimestamp(read_last_use(folder), UTC)
    told = {
        "id": os.path.basename(folder),
        "workspace": read_workspace_path(os.path.dirname(folder)),
        "state": read_session_use(folder),
    }
    return {**told, "bytes": count_bytes(folder), "last": last}
