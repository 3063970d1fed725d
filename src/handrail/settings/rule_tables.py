"""The rules of a settings file: from `[[rule]]` tables to what policy works with."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from typing import Annotated, Any, cast

import msgspec

from handrail.policy.rules.rule import RuleLayer, Rule
from handrail.protocol.decision import Verdict
from handrail.protocol.reading import convert
from handrail.protocol.text import truncate
from handrail.settings.errors import MAX_SHOWN_CHARACTERS, truncate_repr
from handrail.settings.lines import find_table_lines
from handrail.settings.model import Section
from handrail.settings.problem import list_first_problems
from handrail.settings.reference import RULE

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
