"""Overlays of commands that go on after their calls: what they belong to is a folder then, and no process.

Whoever sweeps leaves them alone as long as that folder is there; whoever has to do with the command finds them again.
"""

import os

import msgspec

from handrail.protocol.wire import decode_msgpack
from handrail.sandbox.layer.layer import Overlay, OverlayMount

_OWNER = "owner"


class _Noted(msgspec.Struct, frozen=True):
    """One root, as it is written down: a path is bytes, which need not be text."""

    root: bytes
    upper: bytes
    work: bytes
    below: tuple[bytes, ...]


class _Note(msgspec.Struct, frozen=True):
    owner: bytes
    started: int
    in_user_namespace: bool = msgspec.field(name="own_users")
    overlaid: tuple[_Noted, ...]


def assign_owner(overlay: Overlay, owner: str) -> None:
    """Notes the folder that the overlay belongs to. It stays ours until it is let go of."""
    note = _Note(os.fsencode(owner), overlay.started, overlay.in_user_namespace, tuple(map(_written, overlay.overlaid)))
    with open(os.path.join(overlay.folder, _OWNER), "xb") as file:
        file.write(msgspec.msgpack.encode(note))


def is_owned(folder: str) -> bool:
    """Whether what an overlay belongs to is there."""
    note = _noted(folder)
    return note is not None and os.path.isdir(note.owner)


def reclaim(folder: str) -> Overlay | None:
    """The overlay in a folder, which is ours from here on; None where it is gone, or somebody else has it."""
    note = _noted(folder)
    if note is None:
        return None
    return Overlay.reopen(
        folder, tuple(map(_read, note.overlaid)), note.started, in_user_namespace=note.in_user_namespace
    )


def _written(over: OverlayMount) -> _Noted:
    below = tuple(map(os.fsencode, over.below))
    return _Noted(os.fsencode(over.root), os.fsencode(over.upper), os.fsencode(over.work), below)


def _read(noted: _Noted) -> OverlayMount:
    below = tuple(map(os.fsdecode, noted.below))
    return OverlayMount(os.fsdecode(noted.root), os.fsdecode(noted.upper), os.fsdecode(noted.work), below)


def _noted(folder: str) -> _Note | None:
    try:
        with open(os.path.join(folder, _OWNER), "rb") as file:
            return decode_msgpack(file.read(), _Note)
    except (OSError, msgspec.DecodeError):
        return None
