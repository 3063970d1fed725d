"""The change set of an overlay."""

import contextlib
import os
import posixpath
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.model import OverlayChanges, build_change
from handrail.changes.overlay.differences import (
    HardLinks,
    OverlayDifference,
    UnsupportedEntryError,
    compare_entry,
    find_unsupported_reason,
)
from handrail.changes.overlay.walk import (
    MAX_OVERLAY_DEPTH,
    SWAPPED_ERRNOS,
    LowerDir,
    OverlayEntry,
    OverlayWalk,
    open_lower_dir,
    open_overlay_file,
    open_overlay_parent,
    resolve_overlay_path,
)
from handrail.changes.tree_state import probe_path
from handrail.edit.diff import Diff, build_unified_diff
from handrail.policy.changeset import collect_moved_paths, rank_by_harm
from handrail.protocol.changes import Change, State
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.wire import escape_surrogates
from handrail.sandbox.overlay.overlay import Overlay, OverlayMount, is_changed_since
from handrail.store.change_log import Step
from handrail.workspace.directory import list_hard_links
from handrail.workspace.facts import has_index_entry, list_tracked
from handrail.workspace.file_state import FileId, read_contents
from handrail.workspace.resolve import READ_FILE, closing_descriptor
from handrail.workspace.roots import is_inside
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace

_MAX_NAMED_PATHS = 50
_MAX_DIFFED_BYTES = 1 << 20
_MAX_CONFIG_BYTES = 1 << 16
_MAX_CONFIGS = 64
_MAX_INDEX_BYTES = 64 << 20
_UNCOUNTED = Diff("", 0, 0)
_SPACES = dict.fromkeys(map(ord, " \t\n\r\f\v"))


class DiffBounds(NamedTuple):
    size: int = 8 << 20
    seconds: float = 0.25


def examine(workspace: Workspace, overlay: Overlay) -> OverlayChanges:
    """Finds the changes of a command in its overlay, without diffs. All its processes are dead by now."""
    roots = [_RootExamination(workspace, overlay, mount) for mount in overlay.overlaid]
    differences = [one for root in roots for one in root.list_differences()]
    steps = tuple(Step(os.fsencode(one.path), one.before, one.after) for one in differences)
    unkept = tuple(reason for root in roots for reason in root.unkept)
    more = len(unkept) - _MAX_NAMED_PATHS
    changes = [_build_change(workspace, *pair) for pair in zip(steps, differences, strict=True)]
    # A new file with the bytes of a deleted one is renamed.
    deleted: dict[str, list[Change]] = {}
    for change in changes:
        if change.action == "deleted" and change.kind == "file" and change.before:
            deleted.setdefault(change.before, []).append(change)
    return OverlayChanges(
        started=overlay.started,
        steps=steps,
        manners=tuple(one.placement for one in differences),
        changes=tuple([_mark_rename(change, deleted) for change in changes] if deleted else changes),
        diffs=("",) * len(steps),
        unkept=unkept if more <= 0 else (*unkept[:_MAX_NAMED_PATHS], f"and {more} more"),
        outdated=tuple(os.fsencode(path) for root in roots for path in root.outdated),
    )


class _RootExamination:
    def __init__(self, workspace: Workspace, overlay: Overlay, mount: OverlayMount) -> None:
        self._overlay = overlay
        self._mount = mount
        main = workspace.main.path
        self._main = main if main != mount.root and is_inside(main, mount.root) else ""
        """The workspace, if it lies in this root."""
        self._prefix = _build_prefix(main, mount.root)
        self._walk = OverlayWalk(mount, self._prefix)
        self.unkept: list[str] = []
        self.outdated: list[str] = []

    def list_differences(self) -> list[OverlayDifference]:
        links = HardLinks()
        differences: list[OverlayDifference] = []
        for found in self._walk.paths():
            entry = found._replace(path=self._build_step_path(found.path))
            links.note(entry)
            difference = self._compare(entry)
            if difference is not None:
                differences.append(difference)
        self._report_skipped()
        if links.has_nameless_change(self._mount.work, differences):
            reason = "a hard-linked file was changed under a name that is gone; its other names stay unchanged"
            self.unkept.append(reason)
        differences = list(links.link(differences))
        known = {one.path for one in differences}
        return [*differences, *self._list_written_through(links.find_written_through(differences), known)]

    def _report_skipped(self) -> None:
        for path in self._walk.unreadable:
            self._refuse(path, "it could not be read, so its change cannot be undone")
        for path in self._walk.too_deep:
            self._refuse(path, f"what is in more than {MAX_OVERLAY_DEPTH} folders is not kept")
        self.outdated += self._walk.swapped
        if os.stat(self._mount.upper).st_mode != os.stat(self._mount.root).st_mode:
            self._refuse(self._mount.root, "changes to the permissions of a root are not kept")

    def _list_written_through(
        self, files: dict[FileId, tuple[OverlayDifference, int]], known: set[str]
    ) -> Iterator[OverlayDifference]:
        """Further names of changed files. The overlay does not have them, but a commit changes them too."""
        if files:
            counts = {file: count for file, (_, count) in files.items()}
            for below, file in list_hard_links(self._mount.root, counts):
                path = self._build_step_path(self._prefix + below)
                if path not in known:
                    yield files[file][0]._replace(path=path)

    def _build_step_path(self, path: str) -> str:
        """A path as steps have it: relative in the workspace, even if that lies in a larger root."""
        return path.removeprefix(f"{self._main}/") if self._main else path

    def _compare(self, entry: OverlayEntry) -> OverlayDifference | None:
        reason = find_unsupported_reason(entry)
        if reason is not None:
            self._refuse(entry.path, reason)
        try:
            difference = compare_entry(entry, precise=self._overlay.tracks_hard_links)
        except UnsupportedEntryError as error:
            self._refuse(entry.path, str(error))
            return None
        except OSError as error:
            if error.errno not in SWAPPED_ERRNOS:
                raise
            self.outdated.append(entry.path)
            return None
        if difference is not None and entry.path == self._main:
            self._refuse(entry.path, "the workspace folder itself cannot be changed")
            return None
        if difference is not None and self._is_outdated(entry, difference):
            self.outdated.append(entry.path)
        return difference

    def _is_outdated(self, entry: OverlayEntry, difference: OverlayDifference) -> bool:
        """Whether others changed the path below since the overlay was made."""
        started, upper = self._overlay.started, entry.upper
        if entry.lower is None:
            # It was copied up, so it existed. A file may have been renamed since, a folder never is.
            is_folder = upper is not None and upper.is_folder
            return difference.came_up and (is_folder or is_changed_since(entry.parent_ctime, started))
        if upper is not None and upper.is_folder and entry.lower.is_folder:
            return False  # a new mode; entries that others add do not matter
        return is_changed_since(entry.lower.status.st_ctime_ns, started)

    def _refuse(self, path: str, reason: str) -> None:
        self.unkept.append(f"{escape_surrogates(path)}: {reason}")


def _build_prefix(main: str, root: str) -> str:
    """The start of the paths of a root in steps: relative in the workspace, absolute elsewhere."""
    if root == main:
        return ""
    start = f"{main.rstrip('/')}/"
    return f"{root.removeprefix(start)}/" if root.startswith(start) else f"{root.rstrip('/')}/"


# Changes as people and models see them


def _build_change(workspace: Workspace, step: Step, one: OverlayDifference) -> Change:
    change = build_change(step, workspace.render_path(step.path), _UNCOUNTED, binary=one.binary)
    change = replace(change, added=None, removed=None, shared=one.shared)
    return add_link_target(workspace, step.path, change, one.target)


def add_link_target(workspace: Workspace, path: bytes, change: Change, target: str | None) -> Change:
    if target is None:
        return change
    return replace(change, target=escape_surrogates(target), outside=_is_escaping_link(workspace, path, target))


def _is_escaping_link(workspace: Workspace, path: bytes, target: str) -> bool:
    """Whether a link leads out of all roots, or through a place outside them.

    Only the text of the target counts, since other links on the way are judged themselves. A step back from a name
    (`a/..`) may lead anywhere, because the name may be a link. So it counts as outside.
    """
    parts = [part for part in target.split("/") if part not in {"", "."}]
    if any(part == ".." and before != ".." for before, part in pairwise(parts)):
        return True
    roots = [root.path for root in workspace.roots]
    if target.startswith("/"):
        return not any(is_inside(posixpath.normpath(target), root) for root in roots)
    at = os.path.dirname(os.path.join(workspace.main.path, os.fsdecode(path)))
    for part in target.split("/"):
        at = posixpath.normpath(posixpath.join(at, part))
        if not any(is_inside(at, root) for root in roots):
            return True
    return False


def _mark_rename(change: Change, deleted: dict[str, list[Change]]) -> Change:
    sources = deleted.get(change.after or "") if change.action == "created" and change.kind == "file" else None
    if not sources or not change.size:  # empty files are all alike
        return change
    name = posixpath.basename(change.path)
    source = next((one for one in sources if posixpath.basename(one.path) == name), sources[0])
    sources.remove(source)
    return replace(change, action="renamed", renamed_from=source.path)


# Diffs


def add_diffs(
    workspace: Workspace,
    overlay: Overlay,
    examined: OverlayChanges,
    bounds: DiffBounds = DiffBounds(),  # noqa: B008  it never changes
) -> OverlayChanges:
    """Adds diffs and line counts, the most harmful changes first.

    A change beyond the bounds has an empty diff, and None for `added` and `removed`.
    """
    changes, diffs = list(examined.changes), list(examined.diffs)
    moved = collect_moved_paths(examined.changes)
    left, until = bounds.size, time.monotonic() + bounds.seconds
    for number in rank_by_harm(examined.changes):
        step, change = examined.steps[number], changes[number]
        if change.path in moved or change.action == "renamed":
            changes[number] = replace(change, added=0, removed=0)
            continue
        states = (state for state in (step.before, step.after) if state is not None)
        left -= sum(state.size for state in states if state.size <= _MAX_DIFFED_BYTES)
        if left < 0 or time.monotonic() > until:
            break
        changes[number], diffs[number] = _diff_change(workspace, overlay, step, change) or (change, "")
    return replace(examined, changes=tuple(changes), diffs=tuple(diffs))


def _diff_change(workspace: Workspace, overlay: Overlay, step: Step, change: Change) -> tuple[Change, str] | None:
    """The change with counted lines, and its diff. None if a side is no text, is large, or changed by now."""
    is_file = [state is not None and state.kind == "file" for state in (step.before, step.after)]
    if change.binary or not any(is_file):
        return None
    mount, relative = resolve_overlay_path(workspace, step.path, overlay)
    old, new = _read_text(step.before, mount, relative, now=False), _read_text(step.after, mount, relative, now=True)
    if old is None or new is None:
        return None
    diff = build_unified_diff(old if is_file[0] else None, new if is_file[1] else None, change.path)
    layout_only = all(is_file) and old != new and old.translate(_SPACES) == new.translate(_SPACES)
    return replace(change, added=diff.added, removed=diff.removed, layout_only=layout_only), diff.text


def _read_text(state: State | None, mount: OverlayMount, relative: str, *, now: bool) -> str | None:
    """The text of a file. Empty if there is no file."""
    if state is None or state.kind != "file":
        return ""
    if state.size > _MAX_DIFFED_BYTES:
        return None
    data = _read_upper(state, mount, relative) if now else _read_lower(state, mount, relative)
    text = decode_text(data) if data is not None else None
    return text.text if text is not None else None


def _read_upper(state: State, mount: OverlayMount, relative: str) -> bytes | None:
    """The bytes of a file in an overlay. None if they do not have the hash of the state."""
    try:
        with open_overlay_parent(mount.upper, relative) as (folder, name):
            return _read_file(open_overlay_file(name, folder), state)
    except OSError:
        return None


def _read_lower(state: State, mount: OverlayMount, relative: str) -> bytes | None:
    """The bytes of a file below an overlay. None if they do not have the hash of the state."""
    *folders, name = relative.split("/")
    try:
        inner: LowerDir | None = open_lower_dir(mount.root, mount.below)
        for each in folders:
            if inner is not None:
                with inner:
                    inner = inner.enter(each)
        if inner is None:
            return None
        with inner:
            entry = inner.find(name)
            return _read_file(os.open(name, READ_FILE, dir_fd=entry.folder), state) if entry is not None else None
    except OSError:
        return None


def _read_file(descriptor: int, state: State) -> bytes | None:
    with closing_descriptor(descriptor):
        contents = read_contents(descriptor, state.size, state.size)
    return contents.data if contents.hash == state.hash else None


# Texts of git configurations. Policy judges them, and reads no files itself. One that is not read counts as harmful.


def read_git_configs(workspace: Workspace, overlay: Overlay, examined: OverlayChanges) -> Mapping[str, str]:
    """The text of each new or changed `.git/config` by its path, and the text of before by its hash."""

    def read(step: Step, state: State) -> bytes | None:
        read_side = _read_upper if state is step.after else _read_lower
        return read_side(state, *resolve_overlay_path(workspace, step.path, overlay))

    return _collect_configs(examined, read)


def list_tracked_changes(workspace: Workspace, overlay: Overlay, examined: OverlayChanges) -> frozenset[str]:
    """The changed paths that git tracks: in the index of before, or, if they did not exist, in that of the overlay."""
    root = workspace.main.path
    places = {change.path: os.path.join(root, os.fsdecode(step.path)) for step, change in _pair_changes(examined)}
    before = list_tracked(places.values(), [root])
    new = [places[change.path] for step, change in _pair_changes(examined) if step.before is None]
    after = find_indexed(workspace, overlay, examined, new)
    return frozenset(path for path, place in places.items() if place in before or place in after)


def find_indexed(
    workspace: Workspace, overlay: Overlay, examined: OverlayChanges, paths: Iterable[str]
) -> frozenset[str]:
    """Those of some absolute paths that are in an index which the command wrote."""
    indexes: dict[str, bytes] = {}
    for step, change in _pair_changes(examined):
        if change.path.split("/")[-2:] == [".git", "index"] and step.after is not None:
            mount, relative = resolve_overlay_path(workspace, step.path, overlay)
            data = _read_upper(step.after, mount, relative) if step.after.size <= _MAX_INDEX_BYTES else None
            place = os.path.join(workspace.main.path, os.fsdecode(step.path))
            indexes[os.path.dirname(os.path.dirname(place))] = data or b""
    return frozenset(
        path for path in paths if any(has_index_entry(index, path, folder) for folder, index in indexes.items())
    )


def _pair_changes(examined: OverlayChanges) -> Iterator[tuple[Step, Change]]:
    return zip(examined.steps, examined.changes, strict=True)


def read_preview_configs(workspace: Workspace, history: History, examined: OverlayChanges) -> Mapping[str, str]:
    """The same for a stored preview, whose overlay is gone."""

    def read(step: Step, state: State) -> bytes | None:
        stored = _read_blob(history, state)
        return stored or (None if state is step.after else _read_present(workspace, step.path, state))

    return _collect_configs(examined, read)


def read_new_configs(workspace: Workspace, steps: tuple[Step, ...]) -> dict[str, str]:
    """The text of each new `.git/config` in the workspace by its path."""
    texts: dict[str, str] = {}
    for step in steps:
        is_new = step.before is None and step.after is not None
        if is_new and _is_config(os.fsdecode(step.path)):
            current = probe_path(workspace, step.path, keep=_MAX_CONFIG_BYTES).current
            if current is not None and current.data is not None:
                texts[workspace.render_path(step.path)] = current.data.decode("utf-8", "replace")
    return texts


def _collect_configs(examined: OverlayChanges, read: Callable[[Step, State], bytes | None]) -> dict[str, str]:
    texts: dict[str, str] = {}
    configs = [(step, change.path) for step, change in _pair_changes(examined) if _is_config(change.path)]
    for step, path in configs[:_MAX_CONFIGS]:
        for state in (step.after, step.before):
            if state is None or state.kind != "file" or state.size > _MAX_CONFIG_BYTES:
                continue
            with contextlib.suppress(UnicodeDecodeError):
                if (data := read(step, state)) is not None:
                    texts[path if state is step.after else state.hash] = data.decode()
    return texts


def _is_config(path: str) -> bool:
    return path.split("/")[-2:] == [".git", "config"]


def _read_blob(history: History, state: State) -> bytes | None:
    try:
        return b"".join(history.blobs.chunks(state.hash))
    except (OSError, StoreError):
        return None


def _read_present(workspace: Workspace, path: bytes, before: State) -> bytes | None:
    """The bytes of a file, if it did not change since."""
    try:
        now = probe_path(workspace, path, keep=_MAX_CONFIG_BYTES).current
    except ToolError:
        return None
    return now.data if now is not None and now.hash == before.hash else None
