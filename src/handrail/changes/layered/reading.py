"""Reads small files of a preview again: as the overlay has them, and as they were beneath it."""

import os

from handrail.changes.layered.beneath import LowerDir, open_lower_dir
from handrail.changes.layered.opening import open_overlay_file, open_overlay_parent
from handrail.protocol.changes import State
from handrail.sandbox.layer.layer import OverlayMount
from handrail.workspace.file_state import read_contents
from handrail.workspace.resolve import READ_FILE


def read_upper(state: State, over: OverlayMount, relative: str) -> bytes | None:
    """The bytes of a file in an overlay; None where they are not what its state says."""
    try:
        with open_overlay_parent(over.upper, relative) as (folder, name):
            return _read(open_overlay_file(name, folder), state)
    except OSError:
        return None


def read_lower(state: State, over: OverlayMount, relative: str) -> bytes | None:
    """The bytes of a file beneath it; None where they are not what its state says, by now."""
    *folders, name = relative.split("/")
    try:
        inner: LowerDir | None = open_lower_dir(over.root, over.below)
        for each in folders:
            inner = _entered(inner, each) if inner is not None else None
        if inner is None:
            return None
        with inner:
            place = inner.find(name)
            return _read(os.open(name, READ_FILE, dir_fd=place.folder), state) if place is not None else None
    except OSError:
        return None


def _entered(outer: LowerDir, name: str) -> LowerDir | None:
    with outer:
        return outer.enter(name)


def _read(descriptor: int, state: State) -> bytes | None:
    try:
        contents = read_contents(descriptor, state.size, state.size)
    finally:
        os.close(descriptor)
    return contents.data if contents.hash == state.hash else None
