"""What is wrong with a value or a key, in words."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice

from handrail.protocol.text import truncate
from handrail.settings.errors import MAX_SHOWN_CHARACTERS, truncate_repr
from handrail.settings.hints import describe_hint
from handrail.settings.lines import find_key_lines
from handrail.settings.reference import REFERENCE

_MAX_PROBLEMS = 20  # a generated file can hold thousands of problems; a person reads the first few
_SERVERS = "mcp.servers"  # tables of their own, so no setting
_SECTIONS = tuple(dict.fromkeys(key.partition(".")[0] for key in REFERENCE if "." in key))
_BY_LEAF = {key.rpartition(".")[2]: key for key in REFERENCE}


def describe_refused(refused: Mapping[str, object], text: str = "") -> list[str]:
    """A line for each refused value, with its place where the text of its file is given."""
    lines = find_key_lines(text)
    problems = [_at(lines.get(key)) + _sentence(key, value) for key, value in islice(refused.items(), _MAX_PROBLEMS)]
    left_out = len(refused) - len(problems)
    return [*problems, f"and {left_out:,} more"] if left_out else problems


def list_first_problems(problems: Iterable[str]) -> list[str]:
    """The problems that a person reads, worked out no further than that."""
    few = list(islice(problems, _MAX_PROBLEMS + 1))
    return few if len(few) <= _MAX_PROBLEMS else [*few[:_MAX_PROBLEMS], "and more"]


def _at(line: int | None) -> str:
    return f"line {line}: " if line else ""


def _sentence(key: str, value: object) -> str:
    if key in REFERENCE:
        return f"{key} is {truncate_repr(value)}; allowed: {REFERENCE[key].allowed}{describe_hint(key, value)}"
    if key in _SECTIONS:
        return f"{key} is {truncate_repr(value)}; allowed: a table, written [{key}]"
    return f"{truncate(key, MAX_SHOWN_CHARACTERS)} is not a setting; {_suggestion(key, isinstance(value, dict))}"


def _suggestion(key: str, is_table: bool) -> str:
    name = "[[rule]]" if _first_close(key, ("rule",)) else None
    name = name or (_nearest_section(key) if is_table else _nearest_setting(key))
    return f"did you mean {name}?" if name else f"there are {', '.join(_names_beside(key))}"


def _nearest_section(key: str) -> str | None:
    return _first_close(key, (*_SECTIONS, _SERVERS))


def _nearest_setting(key: str) -> str | None:
    """By the last part alone too: a right name in the wrong table is the usual mistake."""
    leaf = key.rpartition(".")[2]
    if leaf in _BY_LEAF:
        return _BY_LEAF[leaf]
    return _first_close(key, REFERENCE) or _BY_LEAF.get(_first_close(leaf, _BY_LEAF) or "")


def _first_close(name: str, names: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(truncate(name, MAX_SHOWN_CHARACTERS), list(names), n=1)), None)


def _names_beside(key: str) -> list[str]:
    section = key.partition(".")[0]
    return [name for name in (*REFERENCE, _SERVERS) if section not in _SECTIONS or name.startswith(f"{section}.")]
