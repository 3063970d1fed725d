"""Small pieces of wording that several sections share."""

from collections.abc import Sequence

from handrail.protocol.text import truncate
from handrail.protocol.tool_spec import ToolSpec

_MAX_INTENT_CHARS = 160


def join_alternatives(names: Sequence[str]) -> str:
    """`find, grep or ls`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def describe_intent(spec: ToolSpec) -> str:
    """What a tool is for; of one that does not say so, how its description begins."""
    return spec.intent or truncate_line(spec.description.split(". ")[0].rstrip("."), _MAX_INTENT_CHARS)


def uppercase_first(text: str) -> str:
    """The text with its first letter large, and all others as they are."""
    return text[:1].upper() + text[1:]


def truncate_line(text: str, most: int) -> str:
    """The text on one line, truncated."""
    return truncate(" ".join(text.split()), most)
