"""Takes out of a server's words what a person does not see and a model reads: there words could be hidden."""

import re
from typing import Any, cast

from handrail.policy.names import remove_invisible

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_EXACT = frozenset({"enum", "const", "default", "examples", "pattern"})
"""What counts by every character: left out as a whole, since another value would be a wrong one."""


def strip_invisible(text: str) -> str:
    """The text as a person sees it."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub("", remove_invisible(text))


def strip_invisible_schema(value: Any) -> Any:
    """The same of all texts in a schema. A name with something unseen in it is not shown, nor what it is for."""
    if isinstance(value, str):
        return strip_invisible(value)
    if isinstance(value, list):
        return [strip_invisible_schema(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        return {
            key: strip_invisible_schema(one)
            for key, one in known.items()
            if strip_invisible(key) == key and _can_be_shown(key, one)
        }
    return value


def _can_be_shown(key: str, value: Any) -> bool:
    return key not in _EXACT or strip_invisible_schema(value) == value
