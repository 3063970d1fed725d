"""The session that a client works in: one that lasts, named after the client, and nobody else's while it is open."""

import re

from handrail.mcp.caller import Caller

_MAX_SLUG_CHARS = 40


def build_session_name(caller: Caller) -> str:
    """What a session is called after its client: `mcp-claude-code`; `mcp` where it says no name."""
    slug = re.sub(r"[^a-z0-9]+", "-", caller.name.lower()).strip("-")[:_MAX_SLUG_CHARS].strip("-")
    return f"mcp-{slug}" if slug else "mcp"
