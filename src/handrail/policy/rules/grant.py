"""What a person allowed for good: a class of commands, never a program as a whole that runs other code; or one tool of
another server."""

from typing import Literal

import msgspec


class Grant(msgspec.Struct, frozen=True):
    """An answer to a permission request that also counts for the requests after it."""

    id: str
    command: str
    """The class: `git commit`; or the tool: `mcp__github__create_issue`. Compared as a whole; nothing in it is a
    wildcard."""
    scope: Literal["session", "workspace"] = "session"


def find_grant(grants: tuple[Grant, ...], command: str) -> Grant | None:
    """The grant for one part of a call, by the class that policy gave it; a part without a class has none."""
    return next((grant for grant in grants if grant.command == command), None) if command else None
