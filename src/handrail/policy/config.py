"""What a decision depends on besides the facts: mode, rules, grants, limits."""

from typing import Literal

import msgspec

from handrail.protocol.decisions import Mode, Verdict
from handrail.protocol.permissions import Permission

# § [policy.rules.rule] A rule that a person wrote.

RuleLayer = Literal["managed", "user", "project", "session"]
LAYERS: tuple[RuleLayer, ...] = ("managed", "user", "project", "session")
STRICTEST_FIRST: tuple[Verdict, ...] = ("deny", "confirm", "allow")
SAYS: dict[Verdict, str] = {"deny": "denies", "confirm": "asks about", "allow": "allows"}


class Rule(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Says allow, confirm or deny of commands that begin with some words, or of a tool's paths."""

    id: str
    verdict: Verdict
    pattern: str
    """For `exec` the first words of a command (`git push`), for every other tool a glob of paths (`docs/**`)."""
    tool: str = "exec"
    """Of other servers' tools also a glob: `mcp__github__get_*`; their pattern is `**`, since they have no paths."""
    because: str = ""
    match: tuple[str, ...] = ()
    """Commands, or paths, that the rule must be about …"""
    no_match: tuple[str, ...] = ()
    """… and must not. Both are checked at load."""
    any_args: bool = False
    """An allow rule is about paths inside the roots and plain options only, unless this is set."""
    layer: RuleLayer = "user"
    source: str = ""
    """Where it stands: `user:12`."""


class Fault(msgspec.Struct, frozen=True):
    """Something about the rules that a person should know."""

    rule: str
    """The id."""
    problem: str
    """In words."""
    is_error: bool
    """Whether the rules cannot be used; otherwise the rule just never decides anything."""


def rank_rule(rule: Rule) -> tuple[int, int]:
    """Of two rules about the same, the one that decides sorts first: the stricter, then that of the higher layer."""
    return STRICTEST_FIRST.index(rule.verdict), LAYERS.index(rule.layer)


def describe_rule(rule: Rule) -> str:
    """A rule as a person finds it: `rule tests (user:12)`."""
    return f"rule {rule.id} ({rule.source or rule.layer})"


# § [policy.rules.grant] What a person allowed for good: a class of commands, never a program as a whole that runs
# § other code; or one tool of another server.


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


# § [policy.configuration] The configuration that a decision depends on.


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
