"""The overlay of a command that goes on after its call: noted in its folder, and gone with it."""

import contextlib
import os

import msgspec

from handrail.protocol.records import ProcessRecord
from handrail.protocol.results import SandboxUsed
from handrail.protocol.wire import decode_json
from handrail.sandbox.layer.owner import reclaim

NOTE = "layer"
_SETTLED = "settled"
_STOPPED = "what it changed was dropped, since it did not come to its end"


class OverlayNote(msgspec.Struct, frozen=True):
    """What has to be known of it when it ends."""

    layer: str
    """The folder of its overlay."""
    call_id: str
    """The call that started it."""
    sandbox: SandboxUsed


def build_note(yielded: OverlayNote) -> dict[str, str]:
    """The file that lies in its folder from the beginning."""
    return {NOTE: msgspec.json.encode(yielded).decode()}


def read_note(folder: str) -> OverlayNote | None:
    """None for one that works on the real tree."""
    try:
        with open(os.path.join(folder, NOTE), "rb") as file:
            return decode_json(file.read(), OverlayNote)
    except (OSError, msgspec.DecodeError):
        return None


def is_settled(folder: str) -> bool:
    """Whether nothing is left to be committed or dropped."""
    return not os.path.exists(os.path.join(folder, NOTE)) or os.path.exists(os.path.join(folder, _SETTLED))


def read_settlement(folder: str) -> str | None:
    """What became of what it changed; None where that is not settled, or there is nothing to settle."""
    try:
        with open(os.path.join(folder, _SETTLED), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def settle(folder: str, words: str) -> None:
    """Notes what became of it, at once; then the overlay is removed."""
    path = os.path.join(folder, _SETTLED)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(words)
    os.replace(f"{path}.new", path)
    remove_overlay(folder)


def drop_unfinished(folder: str, record: ProcessRecord) -> bool:
    """Drops what one changed that was stopped, or lost; whether it was."""
    if record.state == "running" or (record.exit_code is not None and record.reason is None):
        return False
    settle(folder, _STOPPED)
    return True


def remove_overlay(folder: str) -> None:
    """Removes the overlay of one that is settled, or forgotten. Can be repeated."""
    note = read_note(folder)
    if note is not None:
        with contextlib.suppress(OSError):
            overlay = reclaim(note.layer)
            if overlay is not None:
                overlay.remove()
