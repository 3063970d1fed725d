"""sessions: those that the state folder holds."""

import os
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from handrail.cli.event_row import when
from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, note, table
from handrail.cli.place import workspace_of
from handrail.cli.rows import spelled_size
from handrail.cli.sessions import state_of_here
from handrail.protocol.wire import encode
from handrail.store.places import place_of
from handrail.store.retention import bytes_in, last_use, use_of

SCHEMA = "handrail.sessions/1"


def run(options: Namespace) -> int:
    """Lists the sessions of the workspace, or of all, the one that was used last first."""
    found = [session_row(folder) for folder in sorted(session_folders(options), key=last_use, reverse=True)]
    if options.json:
        answer_json(encode({"schema": SCHEMA, "sessions": found}))
    elif found:
        rows = [(row["id"], row["state"], spelled_size(row["bytes"]), when(row["last"])) for row in found]
        places = [row["workspace"] or "?" for row in found]
        head = ("session", "state", "size", "last used", "workspace")
        wide = [head, *((*row, place) for row, place in zip(rows, places, strict=True))]
        answer(table(wide if options.all else [head[:-1], *rows]))
    else:
        note("no session is stored" if options.all else "this workspace has no session yet; every workspace: --all")
    return OK


def session_folders(options: Namespace) -> list[str]:
    """The folders of the sessions of the workspace, or of all."""
    return state_of_here().sessions(None if options.all else os.path.realpath(workspace_of(options)))


def session_row(folder: str) -> dict[str, Any]:
    """A session as JSON; its workspace is None if it is not recorded."""
    last = datetime.fromtimestamp(last_use(folder), UTC)
    told = {"id": os.path.basename(folder), "workspace": place_of(os.path.dirname(folder)), "state": use_of(folder)}
    return {**told, "bytes": bytes_in(folder), "last": last}
