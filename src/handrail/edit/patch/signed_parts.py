"""What a hunk changes, line by line, as its signs say it: so lines that stay are known among others like them."""

from collections.abc import Iterator, Sequence

from handrail.edit.patch.model import Sign


def split_signed_parts(
    signs: Sequence[Sign], old: Sequence[str], new: Sequence[str]
) -> list[tuple[int, int, list[str]]] | None:
    """Ranges of the old lines, and the new ones that take their place. None where the two are not as signs say."""
    parts: list[tuple[int, int, list[str]]] = []
    start = at = seen = 0
    added: list[str] = []
    for sign in (*signs, " "):
        if sign == " ":
            if added or start < at:
                parts.append((start, at, added))
            start, added = at + 1, []
            if at < len(old) and old[at : at + 1] != new[seen : seen + 1]:
                return None
        elif sign == "+":
            added += new[seen : seen + 1]
        at += sign != "+"
        seen += sign != "-"
    return parts if (at - 1, seen - 1) == (len(old), len(new)) else None


def strip_blank_edges(signs: Sequence[Sign], lines: Sequence[str], count: int) -> Iterator[Sequence[Sign]]:
    """The signs of a hunk for a place with so many lines: without blank lines that stay, at either end of it."""
    missing = sum(sign != "+" for sign in signs) - count
    lead = next((n for n, (sign, line) in enumerate(zip(signs, lines, strict=True)) if sign != " " or line.strip()), 0)
    tail = next((n for n, sign in enumerate(reversed(signs)) if sign != " " or lines[-1 - n].strip()), 0)
    for first in range(max(0, missing - tail), min(lead, missing) + 1):
        yield signs[first : len(signs) - (missing - first)]
