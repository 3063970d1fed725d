"""Rules from settings files, checked and turned into a policy configuration."""

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec

from handrail.policy.config import (
    MCP_PREFIX,
    PolicyConfig,
    RestrictedProfile,
    Rule,
    RuleLayer,
    TrustedServer,
    describe_rule,
)
from handrail.policy.rules.lint import review
from handrail.protocol.decisions import MODES, Mode, Verdict
from handrail.protocol.text import escape_unprintable, truncate
from handrail.protocol.wire import convert
from handrail.settings.errors import (
    MAX_SHOWN_CHARACTERS,
    SettingsError,
    find_table_lines,
    list_first_problems,
    truncate_repr,
)
from handrail.settings.load import LoadedSettings
from handrail.settings.model import Section
from handrail.settings.reference import RULE
from handrail.settings.sources import Layer
from handrail.settings.units import parse_size

if TYPE_CHECKING:
    from handrail.policy.config import Grant


# § [settings.rule_tables] The rules of a settings file: from `[[rule]]` tables to what policy works with.

_MAX_RULES = 200  # each is held against each other one at load
_VERDICTS: dict[str, Verdict] = {"allow": "allow", "ask": "confirm", "deny": "deny"}
_Placed = list[tuple[dict[str, Any], dict[str, int]]]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class RuleTable(Section, frozen=True, kw_only=True):
    """One rule as it is written; exactly one of allow, ask and deny."""

    id: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")]
    """Without a dot: the ids of built-in rules have one, so nobody takes one for the other."""
    allow: Text | None = None
    ask: Text | None = None
    deny: Text | None = None
    tool: Text = "exec"
    because: str = ""
    match: tuple[Text, ...] = ()
    no_match: tuple[Text, ...] = ()
    any_args: bool = False


def parse_rules(tables: object, layer: RuleLayer, text: str) -> tuple[tuple[Rule, ...], list[str]]:
    """The rules, and everything that is wrong with them in words; rules only where nothing is."""
    if not _are_tables(tables):
        return (), [f"rule is {truncate_repr(tables)}; allowed: tables, each written [[rule]]"]
    written = cast("list[dict[str, Any]]", tables)
    if len(written) > _MAX_RULES:
        return (), [f"there are {len(written):,} rules; allowed: at most {_MAX_RULES}"]
    placed = list(zip(written, find_table_lines(text, "rule", len(written)), strict=True))
    if problems := list_first_problems(chain(_problems(placed), _said_twice(placed))):
        return (), problems
    return tuple(_rule(table, layer, lines.get("")) for table, lines in placed), []


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[object]", value))


def _rule(table: Mapping[str, Any], layer: RuleLayer, line: int | None) -> Rule:
    written = convert(table, RuleTable)
    (said,) = _said(table)
    return Rule(
        id=written.id,
        verdict=_VERDICTS[said],
        pattern=table[said],
        tool=written.tool,
        because=written.because,
        match=written.match,
        no_match=written.no_match,
        any_args=written.any_args,
        layer=layer,
        source=f"{layer}:{line}" if line else layer,
    )


def _problems(placed: _Placed) -> Iterator[str]:
    for number, (table, lines) in enumerate(placed, start=1):
        for key, value in table.items():
            if sentence := _wrong(key, value):
                yield _at(lines.get(key) or lines.get(""), number) + sentence
        if "id" not in table:
            yield f"{_at(lines.get(''), number)}the rule has no id; decisions name the rule by it"
        if len(said := _said(table)) != 1:
            says = " and ".join(said) or "nothing"
            yield f"{_at(lines.get(''), number)}the rule says {says}; allowed: one of allow, ask, deny"


def _wrong(key: str, value: object) -> str | None:
    if key not in RULE:
        near = get_close_matches(truncate(key, MAX_SHOWN_CHARACTERS), list(RULE), n=1)
        name = truncate(key, MAX_SHOWN_CHARACTERS) if key.isascii() and key.isidentifier() else truncate_repr(key)
        return f"{name} is no part of a rule; {f'did you mean {near[0]}?' if near else _parts()}"
    sample: dict[str, object] = {"id": "a", key: value}
    try:
        convert(sample, RuleTable)
    except (msgspec.ValidationError, ValueError):
        return f"{key} is {truncate_repr(value)}; allowed: {RULE[key].allowed}"
    return None


def _said_twice(placed: _Placed) -> Iterator[str]:
    first: dict[str, int] = {}
    for number, (table, lines) in enumerate(placed, start=1):
        name: object = table.get("id")
        if isinstance(name, str) and first.setdefault(name, number) != number:
            yield f"{_at(lines.get('id'), number)}another rule has the id {truncate_repr(name)}"


def _said(table: Mapping[str, object]) -> list[str]:
    return [verdict for verdict in _VERDICTS if verdict in table]


def _at(line: int | None, number: int) -> str:
    return f"line {line}: " if line else f"rule {number}: "


def _parts() -> str:
    return f"there are {', '.join(RULE)}"


# § [settings.review] Looks through the rules of all layers together when they are loaded.


def review_rules(rules: tuple[Rule, ...], layers: list[Layer]) -> tuple[str, ...]:
    """What a person should be told about the rules; a SettingsError where they cannot be used."""
    faults = review(rules)
    if problems := list_first_problems(escape_unprintable(fault.problem) for fault in faults if fault.is_error):
        where = " and ".join(layer.source for layer in layers if layer.rules)
        raise SettingsError(
            f"The rules cannot be used ({where})", problems, "Nothing was run. Correct them, then try again."
        )
    return tuple(escape_unprintable(fault.problem) for fault in faults)


# § [settings.policy] What the settings say to policy.

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
