"""Whether a value is what a schema says, as far as that can be told quickly.

A server writes the schema and the value, so neither may cost more than a bound: no pattern is tried, and nothing is
looked at a second time without being counted. What is not understood is taken to be right.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

_MOST_STEPS = 50_000
_DEEPEST = 64
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


class MisshapenError(Exception):
    """Where a value is not what it should be: `$.count is no integer`."""


class _EnoughError(Exception):
    """Nobody looks any further."""


def check_shape(value: Any, schema: Mapping[str, Any]) -> None:
    """MisshapenError where the value is not what the schema says."""
    try:
        _Checking(schema).check(value, schema, "$", 0)
    except _EnoughError:
        return


class _Checking:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_STEPS

    def check(self, value: Any, schema: Any, place: str, depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise _EnoughError
        if schema is False:
            raise MisshapenError(f"{place} is not allowed")
        if not isinstance(schema, dict):
            return
        said = cast("dict[str, Any]", schema)
        if isinstance(said.get("$ref"), str):
            self.check(value, self._led_to(said["$ref"]), place, depth + 1)
        _check_kind(value, said, place)
        self._check_ways(value, said, place, depth)
        if isinstance(value, dict):
            self._check_object(cast("dict[str, Any]", value), said, place, depth)
        elif isinstance(value, list):
            for at, item in enumerate(cast("list[Any]", value)):
                self.check(item, said.get("items", True), f"{place}[{at}]", depth + 1)

    def _check_object(self, value: dict[str, Any], said: dict[str, Any], place: str, depth: int) -> None:
        for name in _texts(said.get("required")):
            if name not in value:
                raise MisshapenError(f"{place} has no {name[:80]!r}")
        known = said.get("properties")
        properties: dict[str, Any] = cast("dict[str, Any]", known) if isinstance(known, dict) else {}
        others: Any = said.get("additionalProperties", True) if "patternProperties" not in said else True
        for name, item in value.items():
            self.check(item, properties.get(name, others), f"{place}.{name[:80]}", depth + 1)

    def _check_ways(self, value: Any, said: dict[str, Any], place: str, depth: int) -> None:
        for part in _schemas(said.get("allOf")):
            self.check(value, part, place, depth + 1)
        for key in ("anyOf", "oneOf"):
            ways = _schemas(said.get(key))
            if ways and not any(self._fits(value, way, place, depth) for way in ways):
                raise MisshapenError(f"{place} is none of what it may be")

    def _fits(self, value: Any, schema: Any, place: str, depth: int) -> bool:
        try:
            self.check(value, schema, place, depth + 1)
        except MisshapenError:
            return False
        return True

    def _led_to(self, reference: str) -> Any:
        """What is at a place of the same schema; anything, where it is elsewhere."""
        found: Any = self._root
        names = reference.split("/")
        if names[0] != "#":
            return True
        for name in names[1:]:
            key = name.replace("~1", "/").replace("~0", "~")
            found = cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None
        return True if found is None else found


def _check_kind(value: Any, said: Mapping[str, Any], place: str) -> None:
    kinds = [said["type"]] if isinstance(said.get("type"), str) else _texts(said.get("type"))
    if kinds and not any(_is(value, kind) for kind in kinds):
        raise MisshapenError(f"{place} is no {' or '.join(kinds)[:80]}")
    if "const" in said and not _same(value, said["const"]):
        raise MisshapenError(f"{place} is not the one thing it may be")
    allowed = said.get("enum")
    if isinstance(allowed, list) and not any(_same(value, one) for one in cast("list[Any]", allowed)):
        raise MisshapenError(f"{place} is not among what it may be")


def _is(value: Any, kind: str) -> bool:
    if kind not in _TYPES:
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _texts(value: Any) -> list[str]:
    return [one for one in cast("list[Any]", value) if isinstance(one, str)] if isinstance(value, list) else []


def _schemas(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else ()
