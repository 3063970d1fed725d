"""The policy configuration that settings files declare."""

from collections.abc import Collection
from typing import cast

from handrail.policy.config import (
    MCP_PREFIX,
    Grant,
    PolicyConfig,
    RestrictedProfile,
    Rule,
    TrustedServer,
    describe_rule,
)
from handrail.protocol.decisions import MODES, Mode
from handrail.protocol.text import escape_unprintable
from handrail.settings.errors import ADVICE, SettingsError, find_similar, list_first_problems, truncate_repr
from handrail.settings.merge import LoadedSettings
from handrail.settings.units import parse_size

_ALWAYS_KNOWN_TOOLS = ("exec", "process", "*")


def review_rules(rules: tuple[Rule, ...], sources: list[str]) -> tuple[str, ...]:
    """Notes about the rules of all layers together. SettingsError: they cannot be used."""
    from handrail.policy.rules.lint import review  # noqa: PLC0415  few have rules

    faults = review(rules)
    if problems := list_first_problems(escape_unprintable(fault.problem) for fault in faults if fault.is_error):
        raise SettingsError(f"The rules cannot be used ({' and '.join(sources)})", problems, ADVICE)
    return tuple(escape_unprintable(fault.problem) for fault in faults)


def build_policy_config(
    loaded: LoadedSettings, mode: Mode | None = None, unattended: bool = False, grants: tuple[Grant, ...] = ()
) -> PolicyConfig:
    """The policy configuration of a session. `mode` replaces that of the settings, within the managed one."""
    settings = loaded.settings
    restricted = settings.restricted if settings.profile == "restricted" else None
    return PolicyConfig(
        mode=pick_stricter_mode(mode or settings.mode, find_managed_mode(loaded)),
        unattended=unattended,
        rules=loaded.rules,
        grants=grants,
        servers=list_trusted_servers(loaded),
        outside=settings.paths.outside,
        bulk_deleted=settings.bulk.deleted,
        bulk_changed=settings.bulk.changed,
        bulk_bytes=parse_size(settings.bulk.bytes),
        restriction=RestrictedProfile(restricted.commands, restricted.folders) if restricted else None,
        denied=settings.tools.deny,
    )


def list_trusted_servers(loaded: LoadedSettings) -> tuple[TrustedServer, ...]:
    """The servers whose tools the settings call read-only. A project counts once it is trusted, .mcp.json never."""
    tables = ((name, table) for name, table in loaded.servers.items() if table.read_only or table.hints)
    return tuple(TrustedServer(name, table.read_only, table.hints) for name, table in tables)


def find_managed_mode(loaded: LoadedSettings) -> Mode:
    """The loosest mode that the managed file allows."""
    return cast("Mode", loaded.managed.get("mode", MODES[-1]))


def pick_stricter_mode(one: Mode, other: Mode) -> Mode:
    return one if MODES.index(one) <= MODES.index(other) else other


def check_tools(loaded: LoadedSettings, names: Collection[str]) -> None:
    """SettingsError: a rule names an unknown tool. Tools of other servers may appear later."""
    if problems := list_unknown_tools(loaded, names):
        raise SettingsError("The rules cannot be used", problems, ADVICE)


def list_unknown_tools(loaded: LoadedSettings, names: Collection[str]) -> list[str]:
    """A sentence for each rule about an unknown tool."""
    known = sorted({*names, *_ALWAYS_KNOWN_TOOLS})
    return [
        f"{describe_rule(rule)} is about the tool {truncate_repr(rule.tool)}; {_suggest_tool(rule.tool, known)}"
        for rule in loaded.rules
        if rule.tool not in known and not rule.tool.startswith(MCP_PREFIX)
    ]


def _suggest_tool(tool: str, known: list[str]) -> str:
    similar = find_similar(tool.lower(), known)
    return f"did you mean {similar}?" if similar else f"there is none of this name, but {', '.join(known)}"
