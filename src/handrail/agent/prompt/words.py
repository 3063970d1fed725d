"""Small pieces of wording that several sections share."""

from collections.abc import Sequence

from handrail.protocol.tool import ToolSpec

_LONG = 160


def either(names: Sequence[str]) -> str:
    """`find, grep or ls`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def intent_of(spec: ToolSpec) -> str:
    """What a tool is for; of one that does not say so, how its description begins."""
    return spec.intent or clipped(spec.description.split(". ")[0].rstrip("."), _LONG)


def capitalised(text: str) -> str:
    """The text with its first letter large, and all others as they are."""
    return text[:1].upper() + text[1:]


def clipped(text: str, most: int) -> str:
    """The text in one line, at most so long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
