"""The change set of an overlay."""

import contextlib
import os
import posixpath
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple, TypeGuard

from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.model import OverlayChanges, build_change
from handrail.changes.overlay.compare import (
    OverlayDifference,
    UnsupportedEntryError,
    compare_entry,
    find_unsupported_reason,
)
from handrail.changes.overlay.hardlinks import HardLinks
from handrail.changes.overlay.walk import (
    MAX_OVERLAY_DEPTH,
    SWAPPED_ERRNOS,
    LowerDir,
    OverlayEntry,
    OverlayWalk,
    build_path_prefix,
    is_ancestor,
    open_lower_dir,
    open_overlay_file,
    open_overlay_parent,
    resolve_overlay_path,
)
from handrail.changes.path_state import probe_path
from handrail.edit.diff import Diff, build_unified_diff
from handrail.policy.changeset import collect_moved_paths, rank_by_harm
from handrail.protocol.changes import Change, State
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.wire import escape_surrogates
from handrail.sandbox.overlay.overlay import Overlay, OverlayMount, is_changed_since
from handrail.store.change_log import Step
from handrail.workspace.directory import list_hard_links
from handrail.workspace.file_state import FileId, read_contents
from handrail.workspace.resolve import READ_FILE
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace

# § [changes.layered.telling] The differences as people and models see them: what was renamed, where links lead.

_UNCOUNTED = Diff("", 0, 0)


def describe_changes(
    workspace: Workspace, steps: Iterable[Step], differences: Iterable[OverlayDifference]
) -> tuple[Change, ...]:
    """One change a step. Lines are not counted yet."""
    changes = [_change(workspace, step, one) for step, one in zip(steps, differences, strict=True)]
    return tuple(_with_renames(changes))


def is_escaping_link(workspace: Workspace, path: bytes, target: str) -> bool:
    """Whether a link at a path leads out of all roots, or passes through a place outside them.

    By its words alone: where other links would take it, those are judged themselves. One step back from a name
    (`a/..`) may be anywhere, as that name may be a link: so it counts as outside.
    """
    if _goes_back(target):
        return True
    base = os.path.dirname(os.path.join(workspace.main.path, os.fsdecode(path)))
    way = "/" if target.startswith("/") else base
    roots = [root.path for root in workspace.roots]
    if target.startswith("/"):
        return not _is_in(posixpath.normpath(target), roots)
    for part in target.split("/"):
        way = posixpath.normpath(posixpath.join(way, part))
        if not _is_in(way, roots):
            return True
    return False


def _goes_back(target: str) -> bool:
    parts = [part for part in target.split("/") if part not in {"", "."}]
    return any(part == ".." and before != ".." for before, part in pairwise(parts))


def _is_in(path: str, roots: list[str]) -> bool:
    return any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots)


def _change(workspace: Workspace, step: Step, one: OverlayDifference) -> Change:
    change = build_change(step, workspace.render_path(step.path), _UNCOUNTED, binary=one.binary)
    change = replace(change, added=None, removed=None, shared=one.shared)
    if one.target is None:
        return change
    return replace(
        change, target=escape_surrogates(one.target), outside=is_escaping_link(workspace, step.path, one.target)
    )


def _with_renames(changes: list[Change]) -> list[Change]:
    """A file that is gone, with the same bytes in a new place, was renamed. The place of the same name comes first."""
    gone: dict[str, list[Change]] = {}
    for change in changes:
        if change.action == "deleted" and change.kind == "file" and change.before:
            gone.setdefault(change.before, []).append(change)
    if not gone:
        return changes
    return [_renamed(change, gone) for change in changes]


def _renamed(change: Change, gone: dict[str, list[Change]]) -> Change:
    sources = gone.get(change.after or "") if change.action == "created" and change.kind == "file" else None
    if not sources or not change.size:  # empty files are all alike
        return change
    name = posixpath.basename(change.path)
    source = next((one for one in sources if posixpath.basename(one.path) == name), sources[0])
    sources.remove(source)
    return replace(change, action="renamed", renamed_from=source.path)


# § [changes.layered.examining] Finds out what a command changed in its overlay. The command is dead by then, and
# § with it all that it started.

_MAX_NAMED_PATHS = 50
"""How many paths are named of those that cannot be committed."""


def examine(workspace: Workspace, overlay: Overlay) -> OverlayChanges:
    """What the command changed; what it only touched is no change. Diffs are made by `with_diffs`, where somebody is to
    see them."""
    looks = [_RootExamination(workspace, overlay, over) for over in overlay.overlaid]
    found = [one for look in looks for one in look.differences()]
    steps = tuple(Step(os.fsencode(one.path), one.before, one.after) for one in found)
    return OverlayChanges(
        started=overlay.started,
        steps=steps,
        manners=tuple(one.placement for one in found),
        changes=describe_changes(workspace, steps, found),
        diffs=("",) * len(steps),
        unkept=_shortened([words for look in looks for words in look.unkept]),
        outdated=tuple(os.fsencode(path) for look in looks for path in look.outdated),
    )


def list_overlay_entries(overlay: Overlay) -> Iterator[OverlayEntry]:
    """Every path that an overlay says something about, without a look at contents."""
    for over in overlay.overlaid:
        yield from OverlayWalk(over).paths()


def _shortened(words: list[str]) -> tuple[str, ...]:
    """Those that somebody may read; of more it says how many."""
    more = len(words) - _MAX_NAMED_PATHS
    return tuple(words) if more <= 0 else (*words[:_MAX_NAMED_PATHS], f"and {more} more")


class _RootExamination:
    """At what lies over one root."""

    def __init__(self, workspace: Workspace, overlay: Overlay, over: OverlayMount) -> None:
        self._overlay = overlay
        self._start = build_path_prefix(workspace, over.root)
        self._walk = OverlayWalk(over, self._start)
        self._main = workspace.main.path if is_ancestor(over.root, workspace.main.path) else ""
        """The workspace, where it lies in the root."""
        self._over = over
        self.unkept: list[str] = []
        self.outdated: list[str] = []

    def differences(self) -> list[OverlayDifference]:
        """All of them, with paths as steps spell them."""
        names = HardLinks()
        found: list[OverlayDifference] = []
        for found_there in self._walk.paths():
            met = self._spelled(found_there)
            names.note(met)
            one = self._compared(met)
            if one is not None:
                found.append(one)
        for path in self._walk.unreadable:
            self._leave(path, "it could not be looked into, so that its change cannot be taken back")
        for path in self._walk.too_deep:
            self._leave(path, f"what is in more than {MAX_OVERLAY_DEPTH} folders is not kept")
        self.outdated += self._walk.swapped
        if os.stat(self._over.upper).st_mode != os.stat(self._over.root).st_mode:
            self.unkept.append(f"{escape_surrogates(self._over.root)}: the permissions of a root itself are not kept")
        if names.changed_without_name(self._over.work, found):
            self.unkept.append(
                "a file with several names was changed under one that is gone: the others stay as they were"
            )
        found = list(names.linked(found))
        return [*found, *self._written_through(names.written_through(found), {one.path for one in found})]

    def _written_through(
        self, files: dict[FileId, tuple[OverlayDifference, int]], known: set[str]
    ) -> Iterator[OverlayDifference]:
        """Names that the command never touched, of files that it wrote to or gave another mode. The overlay says
        nothing about these. A commit writes through the file, so they are listed, judged and undone as well."""
        if files:
            for below, file in list_hard_links(self._over.root, {file: count for file, (_, count) in files.items()}):
                path = self._start + below
                path = path[len(self._main) + 1 :] if self._in_main(path) else path
                if path not in known:
                    yield files[file][0]._replace(path=path)

    def _spelled(self, met: OverlayEntry) -> OverlayEntry:
        """With its path as steps spell it, also where the workspace lies in a larger root."""
        return met._replace(path=met.path[len(self._main) + 1 :]) if self._in_main(met.path) else met

    def _in_main(self, path: str) -> bool:
        return bool(self._main) and path.startswith(f"{self._main}/")

    def _compared(self, met: OverlayEntry) -> OverlayDifference | None:
        reason = find_unsupported_reason(met)
        if reason is not None:
            self._leave(met.path, reason)
        try:
            one = compare_entry(met, precise=self._overlay.tracks_hard_links)
        except UnsupportedEntryError as error:
            self._leave(met.path, str(error))
            return None
        except OSError as error:
            if error.errno not in SWAPPED_ERRNOS:
                raise
            self.outdated.append(met.path)
            return None
        if one is not None and met.path == self._main:
            self._leave(met.path, "the workspace itself is not changed")
            return None
        if one is not None and self._is_outdated(met, one):
            self.outdated.append(met.path)
        return one

    def _is_outdated(self, met: OverlayEntry, one: OverlayDifference) -> bool:
        """Whether others changed beneath what the command was at."""
        started = self._overlay.started
        if met.lower is None:
            # It was taken up from beneath, so something was there; a file may have been renamed, a folder never is.
            is_folder = met.upper is not None and met.upper.is_folder
            return one.came_up and (is_folder or is_changed_since(met.parent_ctime, started))
        if met.upper is not None and met.upper.is_folder and met.lower.is_folder:
            return False  # other permissions; what others add to the folder is no matter
        return is_changed_since(met.lower.status.st_ctime_ns, started)

    def _leave(self, path: str, reason: str) -> None:
        self.unkept.append(f"{escape_surrogates(path)}: {reason}")


# § [changes.layered.reading] Reads small files of a preview again: as the overlay has them, and as they were
# § beneath it.


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


# § [changes.layered.diffing] Makes the diffs of what a command changed: for people, and within bounds, the most
# § harmful first.

_MAX_DIFFED_BYTES = 1 << 20
"""Bytes of a file above which it has no diff."""
_SPACES = dict.fromkeys(map(ord, " \t\n\r\f\v"))


class DiffBounds(NamedTuple):
    """How much is compared line by line in all."""

    size: int = 8 << 20
    seconds: float = 0.25


class _Told(NamedTuple):
    change: Change
    diff: str


def add_diffs(
    workspace: Workspace,
    overlay: Overlay,
    examined: OverlayChanges,
    bounds: DiffBounds = DiffBounds(),  # noqa: B008  it never changes
) -> OverlayChanges:
    """The same with diffs and counted lines. What lies beyond the bounds has none: its `added` and `removed` are
    None, and its diff is empty."""
    changes, diffs = list(examined.changes), list(examined.diffs)
    moved = collect_moved_paths(examined.changes)
    left, until = bounds.size, time.monotonic() + bounds.seconds
    for number in rank_by_harm(examined.changes):
        step, change = examined.steps[number], changes[number]
        if change.path in moved or change.action == "renamed":
            changes[number] = replace(change, added=0, removed=0)
            continue
        left -= _size(step)
        if left < 0 or time.monotonic() > until:
            break
        told = _told(workspace, overlay, step, change)
        if told is not None:
            changes[number], diffs[number] = told
    return replace(examined, changes=tuple(changes), diffs=tuple(diffs))


def _told(workspace: Workspace, overlay: Overlay, step: Step, change: Change) -> _Told | None:
    if change.binary or "file" not in {state.kind for state in (step.before, step.after) if state is not None}:
        return None
    over, relative = resolve_overlay_path(workspace, step.path, overlay)
    old, new = _text(step.before, over, relative, now=False), _text(step.after, over, relative, now=True)
    if old is None or new is None:
        return None
    is_file = [state is not None and state.kind == "file" for state in (step.before, step.after)]
    diff = build_unified_diff(old if is_file[0] else None, new if is_file[1] else None, change.path)
    layout = all(is_file) and old != new and old.translate(_SPACES) == new.translate(_SPACES)
    return _Told(replace(change, added=diff.added, removed=diff.removed, layout_only=layout), diff.text)


def _text(state: State | None, over: OverlayMount, relative: str, *, now: bool) -> str | None:
    """The text of a file; empty where there is no file, None where it is no text, or something else by now."""
    if state is None or state.kind != "file":
        return ""
    if state.size > _MAX_DIFFED_BYTES:
        return None
    data = read_upper(state, over, relative) if now else read_lower(state, over, relative)
    found = decode_text(data) if data is not None else None
    return found.text if found is not None else None


def _size(step: Step) -> int:
    return sum(
        state.size for state in (step.before, step.after) if state is not None and state.size <= _MAX_DIFFED_BYTES
    )


# § [changes.layered.configs] The texts of configurations that a command changed, for policy, which reads no files
# § itself.

_MAX_CONFIG_BYTES = 1 << 16
_MAX_CONFIGS = 64
"""Configurations that are read; a repository has one. What is not read asks like anything that steers git."""


def read_git_configs(workspace: Workspace, overlay: Overlay, examined: OverlayChanges) -> Mapping[str, str]:
    """The text of each `.git/config` that is new or changed, by its path, and what it was before, by its hash."""
    found: dict[str, str] = {}
    for step, path in _configs(examined):
        over, relative = resolve_overlay_path(workspace, step.path, overlay)
        if _is_small(step.after):
            _take(found, path, read_upper(step.after, over, relative))
        if _is_small(step.before):
            _take(found, step.before.hash, read_lower(step.before, over, relative))
    return found


def read_preview_configs(workspace: Workspace, history: History, examined: OverlayChanges) -> Mapping[str, str]:
    """The same of a stored preview, whose overlay is gone."""
    found: dict[str, str] = {}
    for step, path in _configs(examined):
        if _is_small(step.after):
            _take(found, path, _stored(history, step.after))
        if _is_small(step.before):
            _take(found, step.before.hash, _stored(history, step.before) or _still(workspace, step.path, step.before))
    return found


def _configs(examined: OverlayChanges) -> list[tuple[Step, str]]:
    both = zip(examined.steps, examined.changes, strict=True)
    return [(step, change.path) for step, change in both if _is_config(change.path)][:_MAX_CONFIGS]


def _stored(history: History, state: State) -> bytes | None:
    try:
        return b"".join(history.blobs.chunks(state.hash))
    except (OSError, StoreError):
        return None


def _still(workspace: Workspace, path: bytes, before: State) -> bytes | None:
    """What the file holds, where that is what it held then."""
    try:
        now = probe_path(workspace, path, keep=_MAX_CONFIG_BYTES).current
    except ToolError:
        return None
    return now.data if now is not None and now.hash == before.hash else None


def _is_config(path: str) -> bool:
    return path.split("/")[-2:] == [".git", "config"]


def _is_small(state: State | None) -> TypeGuard[State]:
    return state is not None and state.kind == "file" and state.size <= _MAX_CONFIG_BYTES


def _take(found: dict[str, str], name: str, data: bytes | None) -> None:
    if data is not None:
        with contextlib.suppress(UnicodeDecodeError):
            found[name] = data.decode()


# § [changes.snapshots.configs] What a command wrote into new settings of git: a repository that it just made steers
# § nothing, unless they say so.


def read_new_configs(workspace: Workspace, steps: tuple[Step, ...]) -> dict[str, str]:
    """The text of each new `.git/config`, by its path as results name it."""
    found: dict[str, str] = {}
    for step in steps:
        is_new = step.before is None and step.after is not None
        if is_new and f"/{os.fsdecode(step.path)}".endswith("/.git/config"):
            current = probe_path(workspace, step.path, keep=_MAX_CONFIG_BYTES).current
            if current is not None and current.data is not None:
                found[workspace.render_path(step.path)] = current.data.decode("utf-8", "replace")
    return found
