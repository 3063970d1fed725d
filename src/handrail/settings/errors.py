"""Errors in settings, with the line that they are about."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import cast

import msgspec

from handrail.protocol.errors import HandrailError
from handrail.protocol.text import find_similar, truncate
from handrail.protocol.wire import convert
from handrail.settings.declaration import Section
from handrail.settings.model import DEFAULTS, Settings, list_settings

ADVICE = "Nothing was run. Correct them, then try again."
MAX_SHOWN_CHARACTERS = 80

_MAX_PROBLEMS = 20  # a generated file can hold thousands of problems; a person reads the first few
_MAX_HINTS = 3
_SERVERS = "mcp.servers"  # tables of their own, so no setting
_SECTIONS = tuple(dict.fromkeys(key.partition(".")[0] for key in DEFAULTS if "." in key))
_BY_LEAF = {key.rpartition(".")[2]: key for key in DEFAULTS}


class SettingsError(HandrailError):
    """Settings that cannot be used. `problems` holds one line for each."""

    def __init__(self, headline: str, problems: Sequence[str], advice: str, then: str = "handrail config") -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join((f"{headline}:", *(f"  {problem}" for problem in self.problems), advice)), then=then)


def find_invalid_values(values: Mapping[str, object]) -> dict[str, object]:
    """The values whose key is unknown or which their key does not allow."""
    return {
        key: value
        for key, value in values.items()
        if key not in DEFAULTS or not is_convertible(Settings.nest_values({key: value}), Settings)
    }


def is_convertible(values: Mapping[str, object], section: type[Section]) -> bool:
    """Whether a section allows these values."""
    try:
        convert(values, section)
    except (msgspec.ValidationError, ValueError):  # ValueError: text that is not Unicode, from an argument
        return False
    return True


def describe_refused(refused: Mapping[str, object], lines: Mapping[str, int] | None = None) -> list[str]:
    """A sentence for each refused value, with its line in the file if `lines` has one."""
    lines = lines or {}
    first = islice(refused.items(), _MAX_PROBLEMS)
    problems = [format_line(lines.get(key)) + _describe_value(key, value) for key, value in first]
    left_out = len(refused) - len(problems)
    return [*problems, f"and {left_out:,} more"] if left_out else problems


def list_first_problems(problems: Iterable[str]) -> list[str]:
    """The problems that a person reads. The others are not even computed."""
    few = list(islice(problems, _MAX_PROBLEMS + 1))
    return few if len(few) <= _MAX_PROBLEMS else [*few[:_MAX_PROBLEMS], "and more"]


def format_line(line: int | None) -> str:
    return f"line {line}: " if line else ""


def truncate_repr(value: object) -> str:
    """The repr of a value, truncated. It is always one line."""
    try:
        return truncate(repr(value), MAX_SHOWN_CHARACTERS)
    except (ValueError, RecursionError):  # an integer with too many digits; tables nested by a long dotted key
        return "a value too large to show"


def quote_path(path: str) -> str:
    """The path, or its repr if it has unprintable characters. It is never truncated."""
    return path if path.isprintable() else repr(path)


def quote_key(key: str) -> str:
    """The key, or its repr if it is no plain name. It is truncated."""
    return truncate(key, MAX_SHOWN_CHARACTERS) if key.isascii() and key.isidentifier() else truncate_repr(key)


def suggest_key(key: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown key: the name that was meant, or all names."""
    similar = find_similar(key, names)
    return f"did you mean {similar}?" if similar else f"there are {', '.join(names)}"


def _describe_value(key: str, value: object) -> str:
    if key in DEFAULTS:
        return f"{key} is {truncate_repr(value)}; allowed: {list_settings()[key].allowed}{_describe_hint(key, value)}"
    if key in _SECTIONS:
        return f"{key} is {truncate_repr(value)}; allowed: a table, written [{key}]"
    name = "[[rule]]" if find_similar(key, ("rule",)) else None
    name = name or (find_similar(key, (*_SECTIONS, _SERVERS)) if isinstance(value, dict) else _find_setting(key))
    near = _list_neighbours(key)
    some = f"{', '.join(near[:_MAX_PROBLEMS])}{' …' * (len(near) > _MAX_PROBLEMS)}"
    suggestion = f"did you mean {name}?" if name else f"there are {some}"
    return f"{truncate(key, MAX_SHOWN_CHARACTERS)} is not a setting; {suggestion}"


def _find_setting(key: str) -> str | None:
    """By the last part alone too: a right name in the wrong table is the usual mistake."""
    leaf = key.rpartition(".")[2]
    if leaf in _BY_LEAF:
        return _BY_LEAF[leaf]
    return find_similar(key, DEFAULTS) or _BY_LEAF.get(find_similar(leaf, _BY_LEAF))


def _list_neighbours(key: str) -> list[str]:
    section = key.partition(".")[0]
    return [name for name in (*DEFAULTS, _SERVERS) if section not in _SECTIONS or name.startswith(f"{section}.")]


def _describe_hint(key: str, value: object) -> str:
    """The wrong part of a refused value, or a suggestion. Empty if the message needs neither."""
    if key == "sandbox.environment":
        return _describe_variables(_list_items(value))
    if key == "network.allow":
        return _describe_hosts(_list_items(value))
    if key == "tools.deny":
        return _describe_permissions(value)
    amount = list_settings()[key].amount
    suggestion = amount.suggest(value) if amount else None
    return f'; did you mean "{suggestion}"?' if suggestion else ""


def _list_items(value: object) -> list[object]:
    return list(cast("list[object]", value)) if isinstance(value, list | tuple) else []


def _describe_permissions(value: object) -> str:
    from handrail.policy.config import MCP_PREFIX  # noqa: PLC0415  only a mistake needs it

    items = _list_items(value) or [value]
    is_tool = any(isinstance(item, str) and item.startswith(MCP_PREFIX) for item in items)
    return "; tools.disable removes tools of other servers" if is_tool else ""


def _describe_hosts(items: list[object]) -> str:
    from handrail.policy.network.allowlist import (  # noqa: PLC0415  only a mistake needs it
        HostPatternError,
        parse_host_pattern,
    )

    hints: list[str] = []
    for entry in items:
        try:
            parse_host_pattern(entry) if isinstance(entry, str) else None
        except HostPatternError as error:
            hints.append(f"; {error.problem}")
    return "".join(hints[:_MAX_HINTS])


def _describe_variables(items: list[object]) -> str:
    from handrail.policy.secrets import find_withheld_reason  # noqa: PLC0415  only a mistake needs it

    reasons = {name: find_withheld_reason(name) for name in items if isinstance(name, str)}
    hints = [f"; {truncate_repr(name)} {reason}" for name, reason in reasons.items() if reason]
    return "".join(hints[:_MAX_HINTS])
