"""Reads JSON as editors take it, with comments and commas too many, and where in the text everything stands."""

import json
import re
from typing import Any

import msgspec

_MAX_LEVELS = 100
# What may stand between two tokens; a byte order mark only stands at the beginning.
_BETWEEN = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\r\n]*|/\*[\s\S]*?\*/)*")
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?[0-9][0-9eE.+-]*|true|false|null')


class JsoncNode(msgspec.Struct, frozen=True, kw_only=True):
    """A value and where it stands."""

    start: int
    end: int
    value: Any
    children: "tuple[JsoncNode, ...]" = ()
    """The items of a list, the values of an object."""
    keys: tuple[str, ...] = ()
    begins: tuple[int, ...] = ()
    """Where each child begins: in an object, at its key."""
    comma: int = -1
    """Behind the comma that follows the last child; -1 where there is none."""

    @property
    def kind(self) -> str:
        """What it is, in words."""
        kinds = {"dict": "an object", "list": "a list", "str": "a text", "bool": "true or false", "NoneType": "null"}
        return kinds.get(type(self.value).__name__, "a number")

    def members(self, key: str) -> "list[JsoncNode]":
        """The values under a key: more than one where the text has it twice."""
        return [child for name, child in zip(self.keys, self.children, strict=True) if name == key]


class ConfigSyntaxError(Exception):
    """The text is not JSON, whatever is forgiven; it says where and why."""


def parse_jsonc(text: str) -> JsoncNode | None:
    """The value of a text; None where there is none in it."""
    reader = _JsoncReader(text)
    start = reader.skip(0)
    if start == len(text):
        return None
    place = reader.value(start, 0)
    if (end := reader.skip(place.end)) != len(text):
        raise reader.broken(end, "something follows the end of the value")
    return place


class _JsoncReader:
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        """Where the next token begins."""
        found = _BETWEEN.match(self._text, at)
        return found.end() if found else at

    def broken(self, at: int, why: str) -> ConfigSyntaxError:
        """What is wrong, with the line and the column."""
        line = self._text.count("\n", 0, at) + 1
        return ConfigSyntaxError(f"line {line}, column {at - self._text.rfind(chr(10), 0, at)}: {why}")

    def value(self, at: int, depth: int) -> JsoncNode:
        """The value that begins here."""
        if depth > _MAX_LEVELS:
            raise self.broken(at, f"more than {_MAX_LEVELS} levels deep")
        first = self._text[at : at + 1]
        if first in {"{", "["}:
            return self._container(at, depth, is_object=first == "{")
        found = _SCALAR.match(self._text, at)
        if not found:
            raise self.broken(at, f"a value was expected, not {first!r}" if first else "a value is missing")
        return JsoncNode(start=at, end=found.end(), value=self._decoded(found))

    def _decoded(self, found: re.Match[str]) -> Any:
        try:
            return json.loads(found[0])
        except ValueError:
            raise self.broken(found.start(), f"{found[0][:40]!r} is no value") from None

    def _container(self, start: int, depth: int, *, is_object: bool) -> JsoncNode:
        keys, begins, children = list[str](), list[int](), list[JsoncNode]()
        at, comma = self.skip(start + 1), -1
        while self._text[at : at + 1] != ("}" if is_object else "]"):
            if children and comma < 0:
                raise self.broken(at, "a comma or the end is missing")
            begins.append(at)
            if is_object:
                key, at = self._key(at)
                keys.append(key)
            children.append(self.value(at, depth + 1))
            at, comma = self.skip(children[-1].end), -1
            if self._text[at : at + 1] == ",":
                comma = at + 1
                at = self.skip(comma)
        values: Any = [child.value for child in children]
        return JsoncNode(
            start=start,
            end=at + 1,
            value=dict(zip(keys, values, strict=True)) if is_object else values,
            children=tuple(children),
            keys=tuple(keys),
            begins=tuple(begins),
            comma=comma,
        )

    def _key(self, at: int) -> tuple[str, int]:
        """A key, and where its value begins."""
        found = _SCALAR.match(self._text, at)
        if not found or not found[0].startswith('"'):
            raise self.broken(at, "a name in quotes was expected")
        colon = self.skip(found.end())
        if self._text[colon : colon + 1] != ":":
            raise self.broken(colon, "a colon is missing")
        return self._decoded(found), self.skip(colon + 1)
