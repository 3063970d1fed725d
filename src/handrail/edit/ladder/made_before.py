"""Edits that were made before: to make them once more would do harm, or nothing."""

from collections.abc import Sequence
from itertools import pairwise

from handrail.edit.ladder.errors import UnsafeError
from handrail.edit.ladder.fitting import Candidate
from handrail.edit.ladder.sequences import diff_sequences
from handrail.edit.ladder.typography import squash_spaces
from handrail.edit.newlines import Replacement, apply_replacements

_MIN_TELLING_CHARS = 6
"""Characters, without white space, of lines that come in above which their being there already is no chance."""
_MIN_NEW_TEXT_CHARS = 20
"""The same for the whole new text."""


def refuse_applied_edit(text: str, fit: Candidate, replacements: Sequence[Replacement]) -> None:
    """UnsafeError where a place that had to be forgiven something is as the edit would make it, or newText is in the
    file already."""
    _check_order(fit, replacements)
    if (
        not replacements
        or apply_replacements(text, replacements, fit.span.start, fit.span.end) == text[fit.span.start : fit.span.end]
    ):
        raise UnsafeError("it is there already as {new} has it")
    old, new = "\n".join(fit.reading.old), "\n".join(fit.reading.new)
    start, end = replacements[0].start, replacements[-1].end
    if _said(apply_replacements(text, replacements, start, end)) == _said(text[start:end]) and _said(old) != _said(new):
        raise UnsafeError("it is there already as {new} has it, but for white space")
    if len(_said(new)) >= _MIN_NEW_TEXT_CHARS and _is_there(text, new.strip("\n"), fit):
        raise UnsafeError("{new} is in the file already, and the edit may have been made before")
    gone = _said("\n".join(text[start:end] for start, end, _ in replacements))
    for start, end, come in replacements:
        said = _come(_said(text[start:end]), _said(come))
        if len(said) >= _MIN_TELLING_CHARS and said not in gone and _is_beside(text, start, end, said, len(come)):
            raise UnsafeError("the lines that {new} adds are there already")


def _come(old: str, new: str) -> str:
    """What comes in before or behind what stays; nothing where something is replaced."""
    if new.startswith(old):
        return new[len(old) :]
    return new[: len(new) - len(old)] if new.endswith(old) else ""


def _check_order(fit: Candidate, replacements: Sequence[Replacement]) -> None:
    """What is replaced is within the place, and in order: whatever went wrong before, no other byte is touched."""
    apart = all(one.end <= other.start for one, other in pairwise(replacements))
    inside = all(fit.span.start <= start <= end <= fit.span.end for start, end, _ in replacements)
    if not apart or not inside:
        raise UnsafeError("what would change cannot be told apart")


def _is_there(text: str, new: str, fit: Candidate) -> bool:
    """Whether the new text is somewhere else, or at the place itself although the edit adds something."""
    elsewhere = text.find(new, 0, fit.span.start) >= 0 or text.find(new, fit.span.end) >= 0
    return elsewhere or (new in text and (_adds(fit) or _only_space(fit)))


def _only_space(fit: Candidate) -> bool:
    """Whether the edit is about white space alone."""
    return _said("\n".join(fit.reading.old)) == _said("\n".join(fit.reading.new))


def _adds(fit: Candidate) -> bool:
    """Whether the edit does more than take lines away."""
    old, new = ([squash_spaces(line) for line in lines] for lines in (fit.reading.old, fit.reading.new))
    return any(d > c for _, _, c, d in diff_sequences(old, new))


def _is_beside(text: str, start: int, end: int, said: str, length: int) -> bool:
    around = 2 * length + 100
    before, after = text[max(0, start - around) : start], text[end : end + around]
    return _said(after).startswith(said) or _said(before).endswith(said)


def _said(text: str) -> str:
    return squash_spaces(text).replace("\n", "")
