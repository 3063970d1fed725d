"""Lines on their way from one text to another."""

from handrail.edit.diff import parse_diff
from handrail.edit.sequences import diff_lines
from handrail.workspace.text import decode_text


def split_text_lines(data: bytes) -> list[str] | None:
    """The lines of a text without their ends; None of what is no text."""
    text = decode_text(data)
    if text is None:
        return None
    lines = text.text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def find_old_line(old: list[str], new: list[str], line: int) -> int | None:
    """Where a line of the new text was in the old one; None where it was not, as it is."""
    moved = 0
    for _, b, c, d in diff_lines(old, new):
        if line < c:
            break
        if line < d:
            return None
        moved = b - d
    return line + moved


def apply_diff(old: list[str], diff: str) -> list[str] | None:
    """Apply one of our own diffs to lines without their ends. None if the diff is truncated."""
    hunks, is_complete = parse_diff(diff)
    result: list[str] = []
    at = 0
    for hunk in hunks:
        result += (*old[at : hunk.old_start], *(line.removesuffix("\n") for line in hunk.new))
        at = hunk.old_start + len(hunk.old)
    return [*result, *old[at:]] if is_complete else None
