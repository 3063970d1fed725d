"""Compares a layer with what it lies over."""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from handrail.changes.layered.trial import Examined, Manner
from handrail.changes.planned import change_of
from handrail.edit.diff import Diff, unified_diff
from handrail.protocol.change import State
from handrail.sandbox.layer.layer import Layer, Overlaid
from handrail.store.change_log import Step
from handrail.workspace.content import content_of
from handrail.workspace.exact import shown_path
from handrail.workspace.text import decoded
from handrail.workspace.workspace import Workspace


class _Difference(NamedTuple):
    path: bytes
    before: State | None
    after: State | None
    manner: Manner
    old: bytes | None
    new: bytes | None


def examine(workspace: Workspace, layer: Layer) -> Examined:
    """What the command changed; what it only touched is no change."""
    found = [one for over in layer.overlaid for one in _differences(workspace, over)]
    steps = tuple(Step(one.path, one.before, one.after) for one in found)
    shown = [shown_path(workspace, one.path) for one in found]
    diffs = [_diff(one, path) for one, path in zip(found, shown, strict=True)]
    return Examined(
        started=layer.started,
        steps=steps,
        manners=tuple(one.manner for one in found),
        changes=tuple(change_of(step, path, diff) for step, path, diff in zip(steps, shown, diffs, strict=True)),
        diffs=tuple(diff.text for diff in diffs),
    )


def _differences(workspace: Workspace, over: Overlaid) -> Iterator[_Difference]:
    start = b"" if over.root == workspace.main.path else os.fsencode(over.root) + b"/"
    yield from _walk(os.fsencode(over.upper), os.fsencode(over.root), start, opaque=False)


def _walk(upper: bytes, lower: bytes, start: bytes, *, opaque: bool) -> Iterator[_Difference]:
    there = (
        set(os.listdir(lower)) if not opaque and os.path.isdir(lower) and not os.path.islink(lower) else set[bytes]()
    )
    names = set(os.listdir(upper))
    for name in sorted(names):
        yield from _compare(upper + b"/" + name, lower + b"/" + name if name in there else None, start + name)


def _compare(upper: bytes, lower: bytes | None, path: bytes) -> Iterator[_Difference]:
    status = os.lstat(upper)
    before, old = _state(lower) if lower is not None else (None, None)
    if stat.S_ISCHR(status.st_mode):
        if lower is not None:
            yield from _gone(lower, path)
        return
    after, new = _state(upper)
    opaque = after is not None and after.kind == "folder" and _is_opaque(upper)
    if before is not None and before.kind == "folder" and (after is None or after.kind != "folder" or opaque):
        for one in _gone(lower or b"", path):
            if not (opaque and one.path == path):
                yield one
    if before != after:
        yield _Difference(path, before, after, Manner(mtime_ns=status.st_mtime_ns), old, new)
    if after is not None and after.kind == "folder":
        below = lower if lower is not None and before is not None and before.kind == "folder" else upper
        yield from _walk(upper, below, path + b"/", opaque=opaque or below is upper)


def _gone(lower: bytes, path: bytes) -> Iterator[_Difference]:
    before, old = _state(lower)
    if before is not None and before.kind == "folder":
        for name in sorted(os.listdir(lower)):
            yield from _gone(lower + b"/" + name, path + b"/" + name)
    yield _Difference(path, before, None, Manner(), old, None)


def _state(path: bytes) -> tuple[State | None, bytes | None]:
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return State(kind="folder", mode=mode), None
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(path)
        return State(kind="link", hash=content_of(target).hash, size=status.st_size), None
    if not stat.S_ISREG(status.st_mode):
        return None, None
    with open(path, "rb") as file:
        data = file.read()
    return State(kind="file", hash=content_of(data).hash, size=len(data), mode=mode), data


def _is_opaque(folder: bytes) -> bool:
    try:
        return os.getxattr(folder, "user.overlay.opaque") == b"y"
    except OSError:
        return False


def _diff(one: _Difference, path: str) -> Diff:
    old, new = (decoded(data) if data is not None else None for data in (one.old, one.new))
    return unified_diff(old.text if old else None, new.text if new else None, path)
