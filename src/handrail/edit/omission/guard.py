"""The omission guard: a placeholder in the place of real lines is refused, since what it stands for would be lost.

A placeholder is no fault in itself. It is one where it comes with the edit and real lines go in the same hunk.
"""

from typing import NamedTuple

from handrail.protocol.error import ToolError

_SIGNS = (
    *("...", "…", ". . .", "rest", "remain", "existing", "unchanged", "unmodified", "untouched", "same", "previous"),
    *(
        "original",
        "other",
        "omit",
        "elided",
        "snip",
        "trunc",
        "abbrev",
        "not shown",
        "change",
        "keep",
        "as is",
        "as-is",
    ),
    *("as before", "everything", "line"),
)
"""Every placeholder has one of these: without, what knows more about them is not even loaded."""


class Placeholder(NamedTuple):
    """A line of the new text that stands for lines of the old one."""

    line: int
    text: str
    lost: int
    """How many lines of the old text would be gone with it."""


def find_placeholder(old: str, new: str, path: str) -> Placeholder | None:
    """The first placeholder that comes in place of real lines; both texts have plain newlines."""
    return _first(old, new, path, certain=False)


def find_certain_placeholder(old: str, new: str, path: str) -> Placeholder | None:
    """The same for a whole file, where dots alone may be meant: only what says in words that something is left out."""
    return _first(old, new, path, certain=True)


def refuse_omission(old: str, new: str, path: str) -> None:
    """OMITTED_TEXT where a part of a file would become a placeholder."""
    found = find_placeholder(old, new, path)
    if found:
        advice = "Send the real lines in its place, or leave out both it and them."
        raise _refusal(found, "newText", advice)


def refuse_omission_in_file(old: str, new: str, path: str) -> None:
    """OMITTED_TEXT where a file would lose lines to a placeholder that says so in words."""
    found = find_certain_placeholder(old, new, path)
    if found:
        advice = "Send the whole content with the real lines, or change a part of the file with edit."
        raise _refusal(found, "content", advice)


def _first(old: str, new: str, path: str, *, certain: bool) -> Placeholder | None:
    lowered = new.lower()
    if not old or not any(sign in lowered for sign in _SIGNS):
        return None
    from handrail.edit.omission.lost_lines import list_placeholders  # noqa: PLC0415  few edits come to this

    return next(list_placeholders(old, new, path, certain=certain), None)


def _refusal(found: Placeholder, where: str, advice: str) -> ToolError:
    lost = "a line" if found.lost == 1 else f"{found.lost} lines"
    message = (
        f"Line {found.line} of {where} is a placeholder ({found.text!r}): {lost} of the file would be lost. "
        f"Nothing was changed. {advice} "
        "If the file is to have this very line, add it first, without removing anything."
    )
    details = {"line": found.line, "placeholder": found.text, "lost": found.lost}
    return ToolError("OMITTED_TEXT", message, details=details)
