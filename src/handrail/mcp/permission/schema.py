"""Fields of a form, as each version of the protocol has them."""

from collections.abc import Mapping
from typing import Any

from handrail.mcp.versions import HANDSHAKE


def build_choice_field(titles: Mapping[str, str], protocol: str) -> dict[str, Any]:
    """A field for one of several values, each with its words."""
    if protocol == HANDSHAKE[0]:
        return {"type": "string", "enum": list(titles), "enumNames": list(titles.values())}
    return {"type": "string", "oneOf": _titled(titles)}


def build_choices_field(titles: Mapping[str, str]) -> dict[str, Any]:
    """A field for any of several values. The oldest version has none."""
    return {"type": "array", "items": {"anyOf": _titled(titles)}}


def _titled(titles: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": words} for value, words in titles.items()]
