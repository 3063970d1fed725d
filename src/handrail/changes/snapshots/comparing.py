"""Compares a root with the snapshot that was taken of it, and keeps what it takes to go back."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from handrail.changes.planned import change_of
from handrail.changes.snapshots.git import GitError
from handrail.changes.snapshots.marks import Kept, Mark, is_unchanged
from handrail.changes.snapshots.patience import LARGEST, Patience
from handrail.changes.snapshots.reading import content_at, hash_at
from handrail.changes.snapshots.scanning import OTHER, Scan
from handrail.changes.snapshots.taking import Shots, Table
from handrail.edit.diff import Diff, unified_diff
from handrail.protocol.change import Change, State
from handrail.store.blobs import Blobs
from handrail.store.change_log import Step, Was
from handrail.workspace.text import decoded

_DIFFED = 1 << 20
"""Bytes of a file whose lines are compared."""
_NO_DIFF = Diff("", 0, 0)


class Difference(NamedTuple):
    """One path that is another now."""

    step: Step
    change: Change
    diff: str
    target: str | None = None
    """Where a link leads now."""


class Comparison(NamedTuple):
    """What a command changed in one root."""

    differences: list[Difference]
    was: list[Was]
    """Which of the files were one file."""
    lost: list[str]
    """What was not covered and is gone, as results name it."""
    missed: dict[str, str]
    """What has come and is not covered, with the reason in words."""


class _Found(NamedTuple):
    path: str
    before: Kept | None
    after: State | None
    new: bytes | None


def compare(shots: Shots, table: Table, blobs: Blobs, patience: Patience, *, tidy: bool = False) -> Comparison:
    """Every path that is another now than in the snapshot; what it was before is in `blobs` from then on. `tidy`: what
    the command closed is opened, and pipes that it made are removed, so that nothing is hidden by them."""
    now = shots.look_again(table, patience, tidy=tidy)
    found = [one for one in _changed(shots, table, now, patience) if _differs(one)]
    wanted = [one.before.object for one in found if one.before is not None and one.before.object]
    contents = shots.git.contents(wanted, patience)
    differences = [_difference(shots, one, _old(one, contents, blobs)) for one in found]
    shown = shots.root.shown
    missed = {shown(path): why for path, why in now.uncovered.items() if os.fsencode(path) not in table.uncovered}
    return Comparison(
        differences, list(_one_file(shots, table, found)), [shown(path) for path in _lost(table, now)], missed
    )


def _changed(shots: Shots, table: Table, now: Scan, patience: Patience) -> Iterator[_Found]:
    names = {os.fsencode(path): path for path in now.marks}
    for number, name in enumerate(sorted(table.kept.keys() | names.keys())):
        if number % 256 == 0:
            patience.check()
        before, path = table.kept.get(name), os.fsdecode(name)
        mark = now.marks.get(path)
        if before is not None and mark is not None and is_unchanged(before.mark, mark, table.taken):
            continue
        if mark is None and now.uncovered and _is_hidden(path, now.uncovered):
            continue  # it is there, or may be: nobody can look any more
        yield _Found(path, before, *_state(shots, path, mark, before, patience))


def _is_hidden(path: str, places: Mapping[str, str]) -> bool:
    """Whether it is in something that nobody looked into. A pipe holds nothing: what was in its place is gone."""
    while path and path not in places:
        path = path.rpartition("/")[0]
    return bool(path) and places[path] != OTHER


def _state(
    shots: Shots, path: str, mark: Mark | None, before: Kept | None, patience: Patience
) -> tuple[State | None, bytes | None]:
    if mark is None or mark.kind == "other":
        return None, None
    if mark.kind == "folder":
        return State(kind="folder", mode=mark.mode), None
    try:
        if mark.size > LARGEST:
            mark, digest = hash_at(shots.root, path, patience, kernel=shots.kernel)
            return State(kind="file", hash=digest, size=mark.size, mode=mark.mode), None
        mark, data = content_at(shots.root, path, mark, kernel=shots.kernel)
    except FileNotFoundError:
        return None, None
    except OSError:  # it may not be read any more: it is taken to hold what it did
        digest = before.hash.hex() if before is not None else ""
        return State(kind="file", hash=digest, size=mark.size, mode=mark.mode), None
    kind, mode = ("link", None) if mark.kind == "link" else ("file", mark.mode)
    return State(kind=kind, hash=hashlib.sha256(data).hexdigest(), size=len(data), mode=mode), data


def _before(kept: Kept | None) -> State | None:
    if kept is None or kept.mark.kind == "other":
        return None
    kind, mark = kept.mark.kind, kept.mark
    return State(kind=kind, hash=kept.hash.hex(), size=mark.size, mode=mark.mode if kind != "link" else None)


def _differs(one: _Found) -> bool:
    return _before(one.before) != one.after


def _old(one: _Found, contents: Iterator[bytes | None], blobs: Blobs) -> bytes | None:
    """What was there before, kept for undo under its hash."""
    if one.before is None or not one.before.object:
        return None
    data = next(contents)
    digest = one.before.hash.hex()
    if data is None or hashlib.sha256(data).hexdigest() != digest:
        raise GitError("it gives back something else")
    blobs.keep(digest, data, pack=True)
    return data if one.before.mark.kind == "file" else None


def _difference(shots: Shots, one: _Found, old: bytes | None) -> Difference:
    step = Step(_spelled(shots, os.fsencode(one.path)), _before(one.before), one.after)
    shown = shots.root.shown(one.path)
    after = one.after
    target = os.fsdecode(one.new) if after is not None and after.kind == "link" and one.new is not None else None
    is_large = after is not None and after.kind == "file" and one.new is None
    diff, binary = (_NO_DIFF, False) if is_large else _diff(old, one.new if target is None else None, shown)
    return Difference(step, change_of(step, shown, diff, binary=binary), diff.text, target)


def _one_file(shots: Shots, table: Table, found: list[_Found]) -> Iterator[Was]:
    """The names of a file that had several, each with one that it was another name of: if there is one, one that has
    not changed."""
    names: dict[int, list[bytes]] = {one.before.mark.inode: [] for one in found if one.before is not None}
    for name, kept in table.kept.items():
        if kept.mark.kind == "file" and kept.mark.inode in names:
            names[kept.mark.inode].append(name)
    changed = {os.fsencode(one.path) for one in found}
    for group in names.values():
        first = next((name for name in group if name not in changed), group[0] if group else b"")
        for name in group:
            if name in changed and name != first:
                yield Was(_spelled(shots, name), {}, _spelled(shots, first))


def _spelled(shots: Shots, name: bytes) -> bytes:
    """A path as steps name it."""
    return name if shots.root.main else os.path.join(os.fsencode(shots.root.path), name)


def _diff(old: bytes | None, new: bytes | None, shown: str) -> tuple[Diff, bool]:
    if max(len(old or b""), len(new or b"")) > _DIFFED:
        return _NO_DIFF, False
    texts = [decoded(data) if data is not None else None for data in (old, new)]
    if any(text is None and data is not None for text, data in zip(texts, (old, new), strict=True)):
        return _NO_DIFF, True
    before, after = (text.text if text is not None else None for text in texts)
    return unified_diff(before, after, shown), False


def _lost(table: Table, now: Scan) -> Iterator[str]:
    for name, why in table.uncovered.items():
        path = os.fsdecode(name)
        if path not in now.uncovered and path not in now.marks and why != OTHER:
            yield path
