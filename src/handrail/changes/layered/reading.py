"""Reads small files of a trial again: as the layer has them, and as they were beneath it."""

import hashlib
import os

from handrail.changes.layered.beneath import Beneath, beneath
from handrail.changes.layered.opening import FILE, open_file, opened_parent
from handrail.protocol.change import State
from handrail.sandbox.layer.layer import Overlaid


def read_now(state: State, over: Overlaid, relative: str) -> bytes | None:
    """The bytes of a file in a layer; None where they are not what its state says."""
    try:
        with opened_parent(over.upper, relative) as (folder, name):
            return _read(open_file(name, folder), state)
    except OSError:
        return None


def read_before(state: State, over: Overlaid, relative: str) -> bytes | None:
    """The bytes of a file beneath it; None where they are not what its state says, by now."""
    *folders, name = relative.split("/")
    try:
        inner: Beneath | None = beneath(over.root, over.below)
        for each in folders:
            inner = _entered(inner, each) if inner is not None else None
        if inner is None:
            return None
        with inner:
            place = inner.find(name)
            return _read(os.open(name, FILE, dir_fd=place.folder), state) if place is not None else None
    except OSError:
        return None


def _entered(outer: Beneath, name: str) -> Beneath | None:
    with outer:
        return outer.enter(name)


def _read(descriptor: int, state: State) -> bytes | None:
    with open(descriptor, "rb") as file:
        data = file.read(state.size + 1)
    return data if hashlib.sha256(data).hexdigest() == state.hash else None
