"""The configuration that a decision depends on."""

from typing import Literal

import msgspec

from handrail.policy.rules.grant import Grant
from handrail.policy.rules.rule import Rule
from handrail.protocol.decision import Mode
from handrail.protocol.permission import Permission


class RestrictedProfile(msgspec.Struct, frozen=True):
    """The restricted profile: few commands, few folders, and nothing asks."""

    commands: tuple[str, ...]
    """By their first words."""
    folders: tuple[str, ...]
    """Relative to the workspace; files are read and written in these only."""


class TrustedServer(msgspec.Struct, frozen=True):
    """What settings that count (managed, the user's, a trusted project's) vouch for of another server."""

    server: str
    read_only: tuple[str, ...] = ()
    """The tools that only look, by the server's own names: `get_*`."""
    hints: bool = False
    """Whether the server is believed when it says of a tool that it only looks."""


class PolicyConfig(msgspec.Struct, frozen=True):
    """Everything that people decided beforehand."""

    mode: Mode
    unattended: bool = False
    rules: tuple[Rule, ...] = ()
    """Of all layers."""
    grants: tuple[Grant, ...] = ()
    outside: Literal["deny", "ask"] = "deny"
    """What becomes of a path that no root holds."""
    bulk_deleted: int = 20
    bulk_changed: int = 200
    bulk_bytes: int = 256 << 20
    restriction: RestrictedProfile | None = None
    servers: tuple[TrustedServer, ...] = ()
    """Servers that somebody vouches for, in part."""
    denied: tuple[Permission, ...] = ()
    """What no call may do here: nobody is asked about it, and no other setting opens it."""
