"""Edits that were made before: to make them once more would do harm, or nothing."""

from collections.abc import Sequence

from handrail.edit.errors import UnsafeError
from handrail.edit.newlines import Replacement, replaced
from handrail.edit.reading import Reading
from handrail.edit.typography import squashed

_TOLD = 12
"""Characters, without white space, of lines that come in above which their being there already is no chance."""


def refuse_made(text: str, reading: Reading, replacements: Sequence[Replacement]) -> None:
    """UnsafeError where a place that had to be forgiven something is as the edit would make it."""
    if not replacements:
        raise UnsafeError("it is there already as newText has it")
    start, end = replacements[0].start, replacements[-1].end
    is_same = _said(replaced(text, replacements, start, end)) == _said(text[start:end])
    if is_same and _said("\n".join(reading.old)) != _said("\n".join(reading.new)):
        raise UnsafeError("it is there already as newText has it")
    gone = _said("\n".join(text[start:end] for start, end, _ in replacements))
    for start, end, new in replacements:
        said = _said(new)
        if start == end and len(said) >= _TOLD and said not in gone and _is_beside(text, start, said, len(new)):
            raise UnsafeError("the lines that newText adds are there already")


def _is_beside(text: str, at: int, said: str, length: int) -> bool:
    around = 2 * length + 100
    return _said(text[at : at + around]).startswith(said) or _said(text[max(0, at - around) : at]).endswith(said)


def _said(text: str) -> str:
    return squashed(text).replace("\n", "")
