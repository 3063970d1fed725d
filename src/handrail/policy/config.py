"""The policy configuration of a session: mode, rules, grants, limits."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from handrail.protocol.decisions import Mode, PathFact, Verdict
from handrail.protocol.permissions import Permission
from handrail.protocol.tool_spec import MCP_PREFIX

RuleLayer = Literal["managed", "user", "project", "session"]
_LAYERS: tuple[RuleLayer, ...] = ("managed", "user", "project", "session")
STRICTEST_FIRST: tuple[Verdict, ...] = ("deny", "confirm", "allow")
SKILL = "skill."
"""Starts the rule name of a part that an active skill denies. The name of the skill follows."""
GRANTED = "grant."
"""Starts the rule name of a part that a grant allows. The id of the grant follows."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Allows, asks about or denies commands that begin with some words, or a tool's paths."""

    id: str
    verdict: Verdict
    pattern: str
    """For `exec` the first words of a command (`git push`), for every other tool a glob of paths (`docs/**`)."""
    tool: str = "exec"
    """For MCP tools also a glob: `mcp__github__get_*`. Their pattern is `**`, because they have no paths."""
    because: str = ""
    match: tuple[str, ...] = ()
    """Commands or paths that the rule must match. Checked when rules are loaded."""
    no_match: tuple[str, ...] = ()
    """Commands or paths that the rule must not match. Checked when rules are loaded."""
    any_args: bool = False
    """Unless set, an allow rule covers plain options and paths inside the roots only."""
    layer: RuleLayer = "user"
    source: str = ""
    """`user:12`: the file and line that define the rule."""


class Grant(msgspec.Struct, frozen=True):
    """A standing approval of a class of commands, of plain edits, or of one MCP tool."""

    id: str
    command: str
    """`ruff format` or `mcp__github__create_issue`, without wildcards, or `EDITS` or `LOCAL_GIT`."""
    scope: Literal["session", "workspace"] = "session"


class RestrictedProfile(msgspec.Struct, frozen=True):
    """A profile of few commands and few folders, which never asks."""

    commands: tuple[str, ...]
    """Commands by their first words."""
    folders: tuple[str, ...]
    """Folders of the workspace in which files may be read and written."""


class TrustedServer(msgspec.Struct, frozen=True):
    """An MCP server with tools that the settings call read-only."""

    server: str
    read_only: tuple[str, ...] = ()
    """Names or globs of these tools, as the server spells them: `get_*`."""
    hints: bool = False
    """Whether to believe the server's own `readOnlyHint`."""


class PolicyConfig(msgspec.Struct, frozen=True, cache_hash=True):
    """Everything that a decision depends on besides the facts of the call."""

    mode: Mode
    unattended: bool = False
    rules: tuple[Rule, ...] = ()
    grants: tuple[Grant, ...] = ()
    outside: Literal["deny", "ask"] = "deny"
    """The verdict on paths outside every root."""
    bulk_deleted: int = 20
    bulk_changed: int = 200
    bulk_bytes: int = 256 << 20
    restriction: RestrictedProfile | None = None
    servers: tuple[TrustedServer, ...] = ()
    denied: tuple[Permission, ...] = ()
    """Permissions that no call gets, despite all other settings."""

    @property
    def can_grant_edits(self) -> bool:
        """Whether the grant for plain edits has an effect: only in `ask` mode, with a person to ask."""
        return self.mode == "ask" and not self.unattended and self.restriction is None

    @property
    def restricts_reads(self) -> bool:
        """Whether a rule denies or asks about reading some files. A program may read them without naming them."""
        return any(rule.verdict != "allow" and rule.tool in {"*", "read"} for rule in self.rules)

    def can_open(self, fact: PathFact) -> bool:
        """Whether a person may open the folder of a path outside. `closed_reason` may still forbid it."""
        is_write_in_plan = fact.access != "read" and self.mode == "plan"
        return self.outside != "deny" and fact.folder is not None and not is_write_in_plan

    def describe_bulk(self, changed: int, deleted: int) -> str:
        """Why so many files are a bulk change. Empty: they are none."""
        is_bulk = deleted > self.bulk_deleted or changed > self.bulk_changed
        return f"changes {changed} files at once, of which it deletes {deleted}" if is_bulk else ""


def rank_rule(rule: Rule) -> tuple[int, int]:
    """Of two rules about the same subject, the one that decides sorts first: stricter verdict, then higher layer."""
    return STRICTEST_FIRST.index(rule.verdict), _LAYERS.index(rule.layer)


def describe_rule(rule: Rule) -> str:
    """`rule tests (user:12)`."""
    return f"rule {rule.id} ({rule.source or rule.layer})"


def find_grant(grants: tuple[Grant, ...], command: str) -> Grant | None:
    """The grant for a class of commands or an MCP tool. A part of no class has no grant."""
    return next((grant for grant in grants if grant.command == command), None) if command else None


def is_mcp_name_match(pattern: str, tool: str) -> bool:
    """Matches `mcp__github__create_issue`, `mcp__github__get_*`, or all tools of a server: `mcp__github`."""
    patterns = (pattern, f"{pattern.rstrip('_')}__*") if pattern.count("__") == 1 else (pattern,)
    return any(fnmatchcase(tool, glob) for glob in patterns)


def is_mcp_tool_excluded(patterns: Iterable[str], tool: str) -> bool:
    """Whether a pattern names an MCP tool, in any case."""
    name = tool.casefold()
    folded = (pattern.casefold() for pattern in patterns)
    return any(is_mcp_name_match(pattern, name) for pattern in folded if pattern.startswith(MCP_PREFIX))
