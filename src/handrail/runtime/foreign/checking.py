"""Checks arguments against the JSON Schema of another server, and words every problem at once.

A schema is a stranger's: checking it takes a bounded number of steps, and follows references within it only. What
cannot be checked so, and keywords that are not known here, are left to the server, which checks what it is sent too.
Nothing is refused here that the schema allows; nothing that policy says depends on it.
"""

from collections.abc import Iterator
from typing import Any, cast

from handrail.protocol.errors import Problem
from handrail.protocol.text import render_value
from handrail.runtime.foreign.keywords import KEYWORDS
from handrail.runtime.foreign.references import resolve_reference
from handrail.runtime.foreign.values import build_problem

_MAX_STEPS = 20_000
_MAX_PROBLEMS = 20
_MAX_DEPTH_CHECKED = 100
_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")
"""The versions of JSON Schema in which nothing counts beside a `$ref`."""


class _TooMuchError(Exception):
    """The check has had its steps."""


def find_argument_problems(schema: dict[str, Any], given: object) -> tuple[Problem, ...]:
    """All that is wrong with the arguments, as far as it can be told."""
    if not isinstance(given, dict):
        text = f"arguments must be an object, got {render_value(given)}"
        return (Problem(field="", problem=text, value=render_value(given)),)
    found: list[Problem] = []
    check = SchemaCheck(schema)
    try:
        for one in check.of(schema, cast("object", given), ""):
            found.append(one)
            if len(found) >= _MAX_PROBLEMS:
                break
    except (_TooMuchError, ValueError, OverflowError, RecursionError):
        pass  # what was found is wrong, the rest is the server's
    return tuple(found)


class SchemaCheck:
    """One check of a value. It has so many steps, whatever the schema is."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._steps = _MAX_STEPS
        self._depth = 0
        self._only_refers = any(version in str(root.get("$schema")) for version in _OLD)

    def of(self, schema: Any, value: Any, where: str) -> Iterator[Problem]:
        """What is wrong with a value at a place."""
        self._step()
        if schema is False:
            yield build_problem(where, "is not allowed here", value)
        if not isinstance(schema, dict):
            return
        known = cast("dict[str, Any]", schema)
        self._depth += 1
        if self._depth > _MAX_DEPTH_CHECKED:
            raise _TooMuchError
        yield from self._reference(known, value, where)
        if not (self._only_refers and "$ref" in known):
            for keyword, check in KEYWORDS.items():
                if keyword in known:
                    self._step()
                    yield from check(self, known, value, where)
        self._depth -= 1

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether nothing is wrong."""
        depth = self._depth
        fits = next(self.of(schema, value, ""), None) is None
        self._depth = depth
        return fits

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise _TooMuchError

    def _reference(self, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
        target = resolve_reference(self._root, schema.get("$ref"))
        if target is not None:
            yield from self.of(target, value, where)
