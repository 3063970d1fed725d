"""Takes back only what is as it was left, in a file that was changed since."""

from typing import NamedTuple

from handrail.changes.history import History
from handrail.edit.taking_back import take_back
from handrail.store.change_log import Entry
from handrail.workspace.exact import Found
from handrail.workspace.text import decoded, encoded


class Merged(NamedTuple):
    """The file without what was found as it was left."""

    data: bytes
    left: int
    """Places that are no longer as they were left, and stay."""


def merged(history: History, entries: list[Entry], path: bytes, found: Found) -> Merged | None:
    """A text file as it is now, without what the changes put there and is still so; None where nothing is."""
    now = found.current
    text = decoded(now.data) if now is not None and now.data is not None else None
    if text is None or text.damaged or text.line_ending == "mixed":
        return None
    result, done, left = text.text, 0, 0
    for entry in entries:
        for diff in _diffs(history, entry, path):
            taken = take_back(diff, result)
            if taken is None:
                return None
            result, done, left = taken.text, done + taken.done, left + taken.left
    return Merged(encoded(result, text.encoding, text.line_ending), left) if done else None


def _diffs(history: History, entry: Entry, path: bytes) -> list[str]:
    diffs = history.log.diffs(entry.number) or ("",) * len(entry.body.steps)
    return [diff for step, diff in zip(entry.body.steps, diffs, strict=False) if step.path == path]
