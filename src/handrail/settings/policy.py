"""What the settings say to policy."""

from collections.abc import Collection
from typing import TYPE_CHECKING, cast

from handrail.policy.configuration import PolicyConfig, RestrictedProfile, TrustedServer
from handrail.policy.rules.foreign_names import MCP_PREFIX
from handrail.policy.rules.rule import Rule, describe_rule
from handrail.protocol.decision import MODES, Mode
from handrail.settings.errors import SettingsError, truncate_repr
from handrail.settings.load import LoadedSettings
from handrail.settings.units import parse_size

if TYPE_CHECKING:
    from handrail.policy.rules.grant import Grant

_ALWAYS_KNOWN = ("exec", "process", "*")


def build_policy_config(
    loaded: LoadedSettings, mode: Mode | None = None, unattended: bool = False, grants: "tuple[Grant, ...]" = ()
) -> PolicyConfig:
    """The configuration of a decision; a mode in place of the settings' own, never looser than the managed one."""
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
    """What the settings vouch for of other servers' tools: a project's once it is trusted, .mcp.json never."""
    said = ((name, table) for name, table in loaded.servers.items() if table.read_only or table.hints)
    return tuple(TrustedServer(name, table.read_only, table.hints) for name, table in said)


def find_managed_mode(loaded: LoadedSettings) -> Mode:
    """The loosest mode that whoever manages the machine lets be."""
    return cast("Mode", loaded.managed.get("mode", MODES[-1]))


def pick_stricter_mode(one: Mode, other: Mode) -> Mode:
    """The stricter of two modes."""
    return one if MODES.index(one) <= MODES.index(other) else other


def check_tools(loaded: LoadedSettings, names: Collection[str]) -> None:
    """A SettingsError when a rule names a tool that there is not; those of other servers come when they are there."""
    if problems := list_unknown_tools(loaded, names):
        raise SettingsError("The rules cannot be used", problems, "Nothing was run. Correct them, then try again.")


def list_unknown_tools(loaded: LoadedSettings, names: Collection[str]) -> list[str]:
    """What is wrong with the tools that rules name, in words."""
    known = {*names, *_ALWAYS_KNOWN}
    return [
        f"{describe_rule(rule)} is about the tool {truncate_repr(rule.tool)}; {_hint(rule, known)}"
        for rule in loaded.rules
        if rule.tool not in known and not rule.tool.startswith(MCP_PREFIX)
    ]


def _hint(rule: Rule, known: Collection[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

    near = get_close_matches(rule.tool[:128].lower(), sorted(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"there is none of this name, but {', '.join(sorted(known))}"
