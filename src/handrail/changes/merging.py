"""Undoes only what is as it was left, in a file that was changed since."""

from typing import NamedTuple

from handrail.changes.carrying import MAX_IN_MEMORY_BYTES
from handrail.changes.history import History
from handrail.edit.diff import reverse_hunks
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError
from handrail.store.change_log import LoggedChangeSet
from handrail.workspace.file_state import PathState
from handrail.workspace.text import decode_text, encode_text


class ReversedFile(NamedTuple):
    """The file without what was found as it was left."""

    data: bytes
    left: int
    """Places that are no longer as they were left, and stay."""


def reverse_file_changes(
    history: History, entries: list[LoggedChangeSet], path: bytes, found: PathState
) -> ReversedFile | None:
    """A text file as it is now, without what the changes put there and is still so; None where nothing is."""
    now = found.current
    text = decode_text(now.data) if now is not None and now.data is not None else None
    if now is None or text is None or encode_text(text.text, text.encoding, text.line_ending) != now.data:
        return None  # not every byte of it would come through
    result, done, left = text.text, 0, 0
    for entry in entries:
        for diff, before in _diffs(history, entry, path):
            taken = reverse_hunks(diff, before, result) if before is not None else None
            if taken is None:
                return None
            result, done, left = taken.text, done + taken.done, left + taken.left
    return ReversedFile(encode_text(result, text.encoding, text.line_ending), left) if done else None


def _diffs(history: History, entry: LoggedChangeSet, path: bytes) -> list[tuple[str, str | None]]:
    """What the change did to a path, each time with the text of before."""
    diffs = history.log.diffs(entry.number) or ("",) * len(entry.body.steps)
    steps = zip(entry.body.steps, diffs, strict=False)
    return [(diff, _text_of(history, step.before)) for step, diff in steps if step.path == path]


def _text_of(history: History, state: State | None) -> str | None:
    if state is None:
        return ""
    if state.kind != "file" or state.size > MAX_IN_MEMORY_BYTES:
        return None
    try:
        text = decode_text(b"".join(history.blobs.chunks(state.hash)))
    except (OSError, StoreError):
        return None
    return text.text if text is not None else None
