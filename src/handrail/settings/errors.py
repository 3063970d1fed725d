"""Errors in settings, with the line that they are about."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import cast

from handrail.policy.config import MCP_PREFIX
from handrail.protocol.errors import HandrailError
from handrail.protocol.text import truncate
from handrail.settings.reference import REFERENCE
from handrail.settings.units import suggest_amount

# § [settings.errors] What is raised when settings cannot be used, and how foreign values are shown in it.

MAX_SHOWN_CHARACTERS = 80


class SettingsError(HandrailError):
    """Settings that cannot be used; `problems` holds one line for each thing to correct."""

    def __init__(self, headline: str, problems: Sequence[str], advice: str) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join((f"{headline}:", *(f"  {problem}" for problem in self.problems), advice)))


def truncate_repr(value: object) -> str:
    """The repr of a value, truncated. It is always one line."""
    try:
        return truncate(repr(value), MAX_SHOWN_CHARACTERS)
    except (ValueError, RecursionError):  # an integer with too many digits; tables nested by a long dotted key
        return "a value too large to show"


def quote_path(path: str) -> str:
    """The path, or its repr if it has unprintable characters. It is never truncated."""
    return path if path.isprintable() else repr(path)


# § [settings.lines] On which line of a TOML text a key stands.

_NAME = r"([A-Za-z0-9_.-]++)"
_HEADER = re.compile(rf"[ \t]*+\[\[?[ \t]*+{_NAME}[ \t]*+\]")
_ASSIGNMENT = re.compile(rf"[ \t]*+{_NAME}[ \t]*+=")


def find_key_lines(text: str) -> dict[str, int]:
    """The line of each dotted key, as far as it is certain; tomllib does not tell."""
    lines: dict[str, int] = {}
    for number, name in _places(text):
        _note(lines, name, number)
    return lines


def find_table_lines(text: str, array: str, count: int) -> list[dict[str, int]]:
    """For each of the `count` tables written `[[array]]`, the line of each of its keys; `""` has that of the table."""
    found: list[dict[str, int]] = []
    for number, name in _places(text):
        first, _, rest = name.partition(".")
        if name == array:
            found.append({"": number})
        elif first == array and found:
            found[-1].setdefault(rest.partition(".")[0], number)
    if len(found) == count:
        return found
    line = find_key_lines(text).get(array)  # written as a list, or not all in the usual form
    return [{"": line} if line else {} for _ in range(count)]


def find_lines_below(text: str, table: str) -> dict[str, int]:
    """For each name right below a dotted name, the line where it stands first."""
    found: dict[str, int] = {}
    for number, name in _places(text):
        if name.startswith(f"{table}."):
            found.setdefault(name.removeprefix(f"{table}.").partition(".")[0], number)
    return found


def _places(text: str) -> list[tuple[int, str]]:
    """Every header and every assignment: its line and its dotted name."""
    if '"""' in text or "'''" in text:  # a line inside such a string can look like a key
        return []
    places: list[tuple[int, str]] = []
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            places.append((number, header[1]))
            table = f"{header[1]}."
        elif assignment := _ASSIGNMENT.match(line):
            places.append((number, table + assignment[1]))
    return places


def _note(lines: dict[str, int], name: str, number: int) -> None:
    """A problem is reported by section or by setting, so only the first two parts are of use."""
    section, *rest = name.split(".", 2)
    lines.setdefault(section, number)
    if rest:
        lines.setdefault(f"{section}.{rest[0]}", number)


# § [settings.hints] What more there is to say about a value that is refused: which part of it is wrong, and what
# § was meant.

_MAX_HINTS = 3


def describe_hint(key: str, value: object) -> str:
    """The end of a sentence about a refused value; empty where its beginning says everything."""
    if key == "sandbox.environment":
        return _about_variables(value)
    if key == "network.allow":
        return _about_hosts(value)
    if key == "tools.deny" and MCP_PREFIX in truncate_repr(value):
        return "; tools of other servers are taken away by tools.disable"
    section, _, name = key.partition(".")
    meant = suggest_amount(name, value) if section == "limits" else None
    return f'; did you mean "{meant}"?' if meant else ""


def _about_hosts(value: object) -> str:
    from handrail.policy.network.allowlist import parse_host_pattern  # noqa: PLC0415 - only for an error

    told: list[str] = []
    for entry in cast("list[object]", value) if isinstance(value, list | tuple) else []:
        try:
            parse_host_pattern(entry) if isinstance(entry, str) else None
        except ValueError as error:
            told.append("; " + str(error).partition(". Write ")[0])
    return "".join(told[:_MAX_HINTS])


def _about_variables(value: object) -> str:
    from handrail.policy.secrets import find_withheld_reason  # noqa: PLC0415 - only for an error

    names = cast("list[object]", value) if isinstance(value, list | tuple) else []
    reasons = {name: find_withheld_reason(name) for name in names if isinstance(name, str)}
    told = [f"; {truncate_repr(name)} {reason}" for name, reason in reasons.items() if reason]
    return "".join(told[:_MAX_HINTS])


# § [settings.problem] What is wrong with a value or a key, in words.

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
