"""Layers of commands that go on after their calls: what they belong to is a folder then, and no process.

Whoever sweeps leaves them alone as long as that folder is there; whoever has to do with the command finds them again.
"""

import os

import msgspec

from handrail.protocol.reading import from_msgpack
from handrail.sandbox.layer.layer import Layer, Overlaid

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
    own_users: bool
    overlaid: tuple[_Noted, ...]


def give_to(layer: Layer, owner: str) -> None:
    """Notes the folder that the layer belongs to. It stays ours until it is let go of."""
    note = _Note(os.fsencode(owner), layer.started, layer.own_users, tuple(map(_written, layer.overlaid)))
    with open(os.path.join(layer.folder, _OWNER), "xb") as file:
        file.write(msgspec.msgpack.encode(note))


def is_owned(folder: str) -> bool:
    """Whether what a layer belongs to is there."""
    note = _noted(folder)
    return note is not None and os.path.isdir(note.owner)


def taken_back(folder: str) -> Layer | None:
    """The layer in a folder, which is ours from here on; None where it is gone, or somebody else has it."""
    note = _noted(folder)
    if note is None:
        return None
    return Layer.found(folder, tuple(map(_read, note.overlaid)), note.started, own_users=note.own_users)


def _written(over: Overlaid) -> _Noted:
    below = tuple(map(os.fsencode, over.below))
    return _Noted(os.fsencode(over.root), os.fsencode(over.upper), os.fsencode(over.work), below)


def _read(noted: _Noted) -> Overlaid:
    below = tuple(map(os.fsdecode, noted.below))
    return Overlaid(os.fsdecode(noted.root), os.fsdecode(noted.upper), os.fsdecode(noted.work), below)


def _noted(folder: str) -> _Note | None:
    try:
        with open(os.path.join(folder, _OWNER), "rb") as file:
            return from_msgpack(file.read(), _Note)
    except (OSError, msgspec.DecodeError):
        return None
