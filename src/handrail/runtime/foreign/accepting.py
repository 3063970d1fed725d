"""What of another server's listing can be offered: within bounds, and in a form that every provider takes."""

import re
from typing import Any, cast

from handrail.protocol.text import render_value
from handrail.protocol.wire import encode, sanitize_json
from handrail.runtime.foreign.references import resolve_reference
from handrail.runtime.sources import ForeignTool

MAX_LISTED_TOOLS = 256
"""Of one server."""
_MAX_SCHEMA_BYTES = 64 * 1024
_MAX_LEVELS = 32
_MAX_SCHEMA_PARTS = 5_000
_MAX_NAME_CHARS = 256
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What providers let an argument be called."""


def find_tool_problem(tool: object) -> str:
    """Why a tool cannot be offered, in words; empty where it can be."""
    if not isinstance(tool, ForeignTool):
        return f"it is listed as {render_value(tool)}"
    if not all(isinstance(text, str) for text in (tool.name, tool.title, tool.description)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "its name, title or description is no text"
    if not all(isinstance(hint, bool) for hint in (tool.read_only, tool.destructive, tool.idempotent, tool.open_world)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "its hints are neither true nor false"
    if not sanitize_json((tool.name, tool.title, tool.description))[1]:
        return "its name, title or description is no valid Unicode"
    if not tool.name or len(tool.name) > _MAX_NAME_CHARS:
        return f"its name has {len(tool.name)} characters; it may have 1 to {_MAX_NAME_CHARS}"
    return _why_no_arguments(tool.input_schema) or _why_unfit(tool.output_schema or {}, "outputSchema")


def _why_no_arguments(schema: object) -> str:
    if unfit := _why_unfit(schema, "inputSchema"):
        return unfit
    known = cast("dict[str, Any]", schema)
    if known.get("type", "object") != "object":
        return f"its inputSchema is of type {render_value(known['type'])}, not an object"
    properties: Any = known.get("properties", {})
    if not isinstance(properties, dict):
        return "its inputSchema has properties that are no object"
    for name in cast("dict[str, Any]", properties):
        if not _PROPERTY.fullmatch(name):
            return f"it has an argument {render_value(name)}, and no model can be told of one that is called so"
    return ""


def _why_unfit(schema: object, what: str) -> str:
    if not isinstance(schema, dict):
        return f"its {what} is {render_value(schema)}, not an object"
    try:
        size = len(encode(schema))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return f"its {what} is not JSON"
    if size > _MAX_SCHEMA_BYTES:
        return f"its {what} has {size:,} bytes; it may have {_MAX_SCHEMA_BYTES:,}"
    return _SchemaInspection(cast("dict[str, Any]", schema), what).why_unfit()


class _SchemaInspection:
    """One look through a schema."""

    def __init__(self, root: dict[str, Any], what: str) -> None:
        self._root, self._what = root, what
        self._left = _MAX_SCHEMA_PARTS

    def why_unfit(self) -> str:
        return self._of(self._root, _MAX_LEVELS)

    def _of(self, node: Any, depth: int) -> str:
        if not isinstance(node, dict | list):
            return ""
        self._left -= 1
        if depth == 0 or self._left < 0:
            return f"its {self._what} is nested too deeply, or has too many parts"
        if isinstance(node, dict) and not all(isinstance(name, str) for name in cast("dict[object, Any]", node)):
            return f"its {self._what} is not JSON"
        if isinstance(node, dict) and (broken := self._broken(cast("dict[str, Any]", node).get("$ref"))):
            return broken
        inner = cast("dict[str, Any]", node).values() if isinstance(node, dict) else cast("list[Any]", node)
        return next((why for one in inner if (why := self._of(one, depth - 1))), "")

    def _broken(self, reference: Any) -> str:
        if not isinstance(reference, str):
            return ""
        if not reference.startswith("#"):
            return f"its {self._what} refers to {render_value(reference)}, which is elsewhere"
        leads = (
            reference == "#" or not reference.startswith("#/") or resolve_reference(self._root, reference) is not None
        )
        return "" if leads else f"its {self._what} refers to {render_value(reference)}, which is not there"
