"""A replacement in parts: the lines of it that stay as they are can keep their own line endings."""

from collections.abc import Iterable, Iterator
from itertools import accumulate

from handrail.edit.hunks import diff_lines
from handrail.edit.newlines import Replacement


def narrow_replacements(text: str, replacements: Iterable[Replacement]) -> Iterator[Replacement]:
    """The replacements without the lines that they leave as they are."""
    for start, end, new in replacements:
        old_lines, new_lines = _lines(text[start:end]), _lines(new)
        starts = list(accumulate(map(len, old_lines), initial=start))
        for a, b, c, d in diff_lines(old_lines, new_lines):
            yield Replacement(starts[a], starts[b], "".join(new_lines[c:d]))


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    lines = [f"{line}\n" for line in lines]
    return [*lines, last] if last else lines
