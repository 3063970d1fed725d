"""Takes back only what is as it was left, in a file that was changed since."""

from typing import NamedTuple

from handrail.changes.carrying import KEPT_WHOLE
from handrail.changes.history import History
from handrail.edit.taking_back import take_back
from handrail.protocol.change import State
from handrail.protocol.error import StoreError
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
    if now is None or text is None or encoded(text.text, text.encoding, text.line_ending) != now.data:
        return None  # not every byte of it would come through
    result, done, left = text.text, 0, 0
    for entry in entries:
        for diff, before in _diffs(history, entry, path):
            taken = take_back(diff, before, result) if before is not None else None
            if taken is None:
                return None
            result, done, left = taken.text, done + taken.done, left + taken.left
    return Merged(encoded(result, text.encoding, text.line_ending), left) if done else None


def _diffs(history: History, entry: Entry, path: bytes) -> list[tuple[str, str | None]]:
    """What the change did to a path, each time with the text of before."""
    diffs = history.log.diffs(entry.number) or ("",) * len(entry.body.steps)
    steps = zip(entry.body.steps, diffs, strict=False)
    return [(diff, _text_of(history, step.before)) for step, diff in steps if step.path == path]


def _text_of(history: History, state: State | None) -> str | None:
    if state is None:
        return ""
    if state.kind != "file" or state.size > KEPT_WHOLE:
        return None
    try:
        text = decoded(b"".join(history.blobs.chunks(state.hash)))
    except (OSError, StoreError):
        return None
    return text.text if text is not None else None
