"""The policy configuration that settings files declare."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, cast

import msgspec

from handrail.policy.config import (
    MCP_PREFIX,
    Grant,
    PolicyConfig,
    RestrictedProfile,
    Rule,
    RuleLayer,
    TrustedServer,
    describe_rule,
)
from handrail.protocol.decisions import MODES, Mode, Verdict
from handrail.protocol.text import escape_unprintable
from handrail.protocol.wire import convert
from handrail.settings.declaration import Field, Section, list_fields
from handrail.settings.errors import (
    ADVICE,
    SettingsError,
    find_similar,
    find_table_lines,
    format_line,
    list_first_problems,
    quote_key,
    suggest_key,
    truncate_repr,
)
from handrail.settings.merge import LoadedSettings
from handrail.settings.units import parse_size

_MAX_RULES = 200  # each is compared with every other one at load
_VERDICTS: dict[str, Verdict] = {"allow": "allow", "ask": "confirm", "deny": "deny"}
_ALWAYS_KNOWN_TOOLS = ("exec", "process", "*")
_LocatedTables = list[tuple[dict[str, Any], dict[str, int]]]
"""Each table with the lines of its keys."""

Text = Annotated[str, msgspec.Meta(min_length=1)]
Pattern = Annotated[Text | None, Field(allowed="one text that is not empty; a second pattern is a second rule")]
Examples = Annotated[tuple[Text, ...], Field(allowed="a list of texts")]


class RuleTable(Section, frozen=True, kw_only=True):
    """A rule in a file. It has exactly one of allow, ask and deny."""

    # Without a dot: ids of built-in rules have one, so the two cannot be confused.
    id: Annotated[
        str,
        msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z"),
        Field("What decisions call the rule."),
        Field(allowed="letters, digits, - and _, at most 64, beginning with a letter or digit"),
    ]
    allow: Annotated[Pattern, Field("Commands by their first words, or paths by a pattern, that run unasked.")] = None
    ask: Annotated[Pattern, Field("Those that ask, whatever the mode.")] = None
    deny: Annotated[Pattern, Field("Those that are refused.")] = None
    tool: Annotated[
        Text,
        Field("The tool that the rule is about, or * for every tool but exec; without it, exec."),
        Field(allowed="the name of a tool"),
    ] = "exec"
    because: Annotated[str, Field("Why, for the person or the model that reads the decision.", allowed="a text")] = ""
    match: Annotated[Examples, Field("Commands or paths that the rule must be about; checked at load.")] = ()
    no_match: Annotated[Examples, Field("Commands or paths that it must not be about; checked at load.")] = ()
    any_args: Annotated[bool, Field("Whether an allowed command may have any arguments.")] = False


RULE = list_fields(RuleTable)
"""The declaration of every key of a rule."""


def parse_rules(tables: object, layer: RuleLayer, text: str) -> tuple[tuple[Rule, ...], list[str]]:
    """The rules, or all their problems in words. `text` is the file, for line numbers."""
    if not _are_tables(tables):
        return (), [f"rule is {truncate_repr(tables)}; allowed: tables, each written [[rule]]"]
    written = cast("list[dict[str, Any]]", tables)
    if len(written) > _MAX_RULES:
        return (), [f"there are {len(written):,} rules; allowed: at most {_MAX_RULES}"]
    located = list(zip(written, find_table_lines(text, "rule", len(written)), strict=True))
    if problems := list_first_problems(chain(_list_problems(located), _list_repeated_ids(located))):
        return (), problems
    return tuple(_build_rule(table, layer, lines.get("")) for table, lines in located), []


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
    """The stricter of two modes."""
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


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[object]", value))


def _build_rule(table: Mapping[str, Any], layer: RuleLayer, line: int | None) -> Rule:
    written = convert(table, RuleTable)
    (verdict,) = _list_verdicts(table)
    return Rule(
        id=written.id,
        verdict=_VERDICTS[verdict],
        pattern=table[verdict],
        tool=written.tool,
        because=written.because,
        match=written.match,
        no_match=written.no_match,
        any_args=written.any_args,
        layer=layer,
        source=f"{layer}:{line}" if line else layer,
    )


def _list_problems(located: _LocatedTables) -> Iterator[str]:
    for number, (table, lines) in enumerate(located, start=1):
        place = format_line(lines.get("")) or f"rule {number}: "
        for key, value in table.items():
            if problem := _find_problem(key, value):
                yield (format_line(lines.get(key)) or place) + problem
        if "id" not in table:
            yield f"{place}the rule has no id; decisions name the rule by it"
        if len(verdicts := _list_verdicts(table)) != 1:
            yield f"{place}the rule says {' and '.join(verdicts) or 'nothing'}; allowed: one of allow, ask, deny"


def _find_problem(key: str, value: object) -> str | None:
    if key not in RULE:
        return f"{quote_key(key)} is no part of a rule; {suggest_key(key, RULE)}"
    sample: dict[str, object] = {"id": "a", key: value}
    try:
        convert(sample, RuleTable)
    except (msgspec.ValidationError, ValueError):
        return f"{key} is {truncate_repr(value)}; allowed: {RULE[key].allowed}"
    return None


def _list_repeated_ids(located: _LocatedTables) -> Iterator[str]:
    first: dict[str, int] = {}
    for number, (table, lines) in enumerate(located, start=1):
        name: object = table.get("id")
        if isinstance(name, str) and first.setdefault(name, number) != number:
            place = format_line(lines.get("id")) or f"rule {number}: "
            yield f"{place}another rule has the id {truncate_repr(name)}"


def _list_verdicts(table: Mapping[str, object]) -> list[str]:
    return [verdict for verdict in _VERDICTS if verdict in table]
