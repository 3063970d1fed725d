"""The session that a client works in: one that lasts, named after the client, and nobody else's while it is open."""

import os
import re

from handrail.mcp.caller import Caller
from handrail.protocol.errors import UsageError
from handrail.store.runner import Lease
from handrail.store.state_dir import StateFolder

_MAX_SAME_NAME_SESSIONS = 100
_MAX_SLUG_CHARS = 40


def build_session_name(caller: Caller) -> str:
    """What a session is called after its client: `mcp-claude-code`; `mcp` where it says no name."""
    slug = re.sub(r"[^a-z0-9]+", "-", caller.name.lower()).strip("-")[:_MAX_SLUG_CHARS].strip("-")
    return f"mcp-{slug}" if slug else "mcp"


def claim_session(state: str, workspace: str, name: str) -> tuple[str, Lease]:
    """A session of this name that nobody is at work in, or `name-2` and so on: its id, and what says that it is ours.

    So grants and what was left waiting are there again when the client starts anew, and two windows do not share them.
    """
    folder, root = StateFolder(state), os.path.realpath(workspace)
    for number in range(1, _MAX_SAME_NAME_SESSIONS + 1):
        session_id = name if number == 1 else f"{name}-{number}"
        lease = Lease(folder.session(root, session_id), session_id)
        try:
            return session_id, lease.__enter__()
        except UsageError:
            continue
    raise UsageError(
        f"{_MAX_SAME_NAME_SESSIONS} sessions called {name} are at work in {root}; name another one with --session"
    )
