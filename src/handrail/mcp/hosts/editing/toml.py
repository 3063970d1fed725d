"""Puts what is wanted into a TOML text. There are many ways to write a table: each is tried, and what comes of it is
read again; one that does not come to exactly what is wanted is not taken."""

import re
import tomllib
from collections.abc import Iterator
from functools import reduce
from typing import Any

from handrail.mcp.hosts.editing.layout import render_inline
from handrail.mcp.hosts.editing.places import ConfigSyntaxError
from handrail.mcp.hosts.editing.wanted import CannotMerge, ServerEntry, is_same_json, merge_value

_HEADER = re.compile(r"[ \t]*\[\[?[ \t]*([A-Za-z0-9_.\"' -]+?)[ \t]*\]\]?[ \t]*(?:#.*)?")
_ASSIGNMENT = re.compile(r"[ \t]*([A-Za-z0-9_-]+)[ \t]*=[ \t]*")
# tomllib takes minutes for one key of 100,000 parts; no setting has more than a few.
_DEEP_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*){32}""")
_MAX_VALUE_LINES = 100
"""Lines that one value may take."""
_MAX_TRIED_LINES = 20
"""Lines that look like assignments and may be the text of a value instead."""

Table = tuple[str, ...]


def merge_toml(text: str, wanted: dict[str, Any]) -> str:
    """The text with what is wanted in it. Broken where it is no TOML; Misfit where no way is found."""
    intended = merge_value(parse_toml(text), wanted)
    for table, values in _tables(wanted):
        text = _with_table(text, table, values)
    if not is_same_json(parse_toml(text), intended):
        raise CannotMerge("it cannot be changed without touching what else is in it")
    return text


def parse_toml(text: str) -> dict[str, Any]:
    """What a text says; Broken where it is no TOML."""
    if _DEEP_KEY.search(text):
        raise ConfigSyntaxError("a name of more than 32 parts")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigSyntaxError(f"not TOML: {str(error)[:200]}") from None


def _tables(wanted: Any, path: Table = ()) -> Iterator[tuple[Table, dict[str, Any]]]:
    """The tables that have values, each with its own."""
    values: dict[str, Any] = wanted.entry if isinstance(wanted, ServerEntry) else wanted
    own = {key: value for key, value in values.items() if not isinstance(value, dict | ServerEntry)}
    if own:
        yield path, own
    for key, value in values.items():
        if key not in own:
            yield from _tables(value, (*path, key))


def _with_table(text: str, table: Table, values: dict[str, Any]) -> str:
    before = parse_toml(text)
    intended = merge_value(before, _nested(table, values))
    if is_same_json(before, intended):
        return text
    there = reduce(lambda inside, name: inside[name], table, intended)
    for candidate in _candidates(text, table, {key: there[key] for key in values}):
        try:
            if is_same_json(tomllib.loads(candidate), intended):
                return candidate
        except (ValueError, RecursionError):
            continue
    name = ".".join((*table, *values)) if len(values) == 1 else ".".join(table)
    raise CannotMerge(f"its {name} is written in a way that cannot be changed in place")


def _candidates(text: str, table: Table, values: dict[str, Any]) -> Iterator[str]:
    exchanged, left = text, dict(values)
    for key, value in values.items():
        if (found := _exchanged(exchanged, table, key, value)) is not None:
            exchanged = found
            del left[key]
    if not left:
        yield exchanged
        return
    lines = "".join(f"{key} = {render_inline(value)}\n" for key, value in left.items())
    if table:
        yield _under_header(exchanged, table, lines)
        yield _at_the_end(exchanged, table, lines)
    dotted = "".join(f"{'.'.join((*table, key))} = {render_inline(value)}\n" for key, value in left.items())
    yield _before_tables(exchanged, dotted)


def _exchanged(text: str, table: Table, key: str, value: Any) -> str | None:
    """The text with another value for a key that it has; None where it has none."""
    for at, here, name in _assignments(text):
        if (*here, name) == (*table, key):
            end = _end_of_value(text, at)
            return None if end is None else f"{text[:at]}{render_inline(value)}{text[end:]}"
    return None


def _assignments(text: str) -> Iterator[tuple[int, Table, str]]:
    """Where the value of each plain assignment begins, its table and its key, as far as lines tell."""
    at, table = 0, Table()
    for line in text.splitlines(keepends=True):
        if header := _HEADER.fullmatch(line.rstrip("\r\n")):
            table = _name(header[1])
        elif assignment := _ASSIGNMENT.match(line):
            yield at + assignment.end(), table, assignment[1]
        at += len(line)


def _end_of_value(text: str, start: int) -> int | None:
    """Where the value ends that begins here: with the first line that makes it one, without the comment there."""
    end = start
    for _ in range(_MAX_VALUE_LINES):
        end = text.find("\n", end + 1)
        end = len(text) if end < 0 else end
        whole = text[start:end]
        try:
            value = tomllib.loads(f"x = {whole}\n")
        except ValueError:
            if end == len(text):
                return None
            continue
        return start + _without_comment(whole, value)
    return None


def _without_comment(whole: str, value: dict[str, Any]) -> int:
    """How long the value is without what follows it on its last line."""
    for mark in re.finditer(r"[ \t]*#|[ \t\r]*\Z", whole):
        try:
            if is_same_json(tomllib.loads(f"x = {whole[: mark.start()]}\n"), value):
                return mark.start()
        except ValueError:
            continue
    return len(whole)


def _under_header(text: str, table: Table, lines: str) -> str:
    at = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        header = _HEADER.fullmatch(line.rstrip("\r\n"))
        if header and _name(header[1]) == table:
            between = "" if line.endswith("\n") else "\n"
            return f"{text[:at]}{_as_in(text, between + lines)}{text[at:]}"
    return text


def _at_the_end(text: str, table: Table, lines: str) -> str:
    between = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    name = ".".join(table)
    return text + _as_in(text, f"{between}[{name}]\n{lines}")


def _before_tables(text: str, lines: str) -> str:
    """Behind the last value that is in no table; where there is none, before the first table and what is said of it."""
    at = 0
    starts = [start for start, table, _ in _assignments(text) if not table]
    for start in reversed(starts[-_MAX_TRIED_LINES:]):
        if (end := _end_of_value(text, start)) is not None:
            newline = text.find("\n", end)
            at = len(text) if newline < 0 else newline + 1
            break
    if not at:
        at = _first_paragraph_with_a_table(text)
        lines = lines if at == len(text) else f"{lines}\n"
    between = "" if not text[:at] or text[:at].endswith("\n") else "\n"
    return text[:at] + _as_in(text, between + lines) + text[at:]


def _first_paragraph_with_a_table(text: str) -> int:
    at = paragraph = 0
    for line in text.splitlines(keepends=True):
        if _HEADER.fullmatch(line.rstrip("\r\n")):
            return paragraph
        at += len(line)
        if not line.strip():
            paragraph = at
    return len(text)


def _nested(table: Table, values: dict[str, Any]) -> dict[str, Any]:
    for key in reversed(table):
        values = {key: values}
    return values


def _name(header: str) -> Table:
    return tuple(part.strip(" \t\"'") for part in header.split("."))


def _as_in(text: str, lines: str) -> str:
    return lines.replace("\n", "\r\n") if "\r\n" in text else lines
