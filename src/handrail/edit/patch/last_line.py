"""The newline at the end of a file: kept as it is unless the patch says something about it."""

from collections.abc import Sequence

from handrail.edit.newlines import Replacement
from handrail.edit.patch.model import Hunk
from handrail.edit.patch.text_lines import TextLines


def adjust_last_newline(lines: TextLines, replacements: Sequence[Replacement], last: Hunk | None) -> list[Replacement]:
    """Replacements in the text as it is, made of those in one whose last line has its newline. `last` is the hunk that
    the text ends with, if one does."""
    ended = lines.ended
    if last is not None and last.old_open != last.new_open:
        ended = last.old_open
    if lines.ended:
        return list(replacements) if ended or not replacements else _without_newline(lines, replacements)
    return _in_open_text(len(lines.text) - 1, replacements, ended=ended)


def _without_newline(lines: TextLines, replacements: Sequence[Replacement]) -> list[Replacement]:
    *others, (start, end, text) = replacements
    if end == len(lines.text) and text.endswith("\n"):
        return [*others, Replacement(start, end, text[:-1])]
    return [*replacements, Replacement(len(lines.text) - 1, len(lines.text), "")]


def _in_open_text(length: int, replacements: Sequence[Replacement], *, ended: bool) -> list[Replacement]:
    """The last line has no newline, so what reaches behind it ends with it."""
    settled: list[Replacement] = []
    for start, end, text in replacements:
        closed = text if ended else text.removesuffix("\n")
        if end <= length:
            settled.append(Replacement(start, end, text))
        elif start <= length:
            settled.append(Replacement(start, length, closed))
        else:
            settled.append(Replacement(length, length, f"\n{closed}"))
    if ended and not any(end > length for _, end, _ in replacements):
        settled.append(Replacement(length, length, "\n"))
    return settled
