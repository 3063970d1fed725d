"""Makes the diffs of what a command changed: for people, and within bounds, the most harmful first."""

import time
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.layered.places import resolve_overlay_path
from handrail.changes.layered.reading import read_lower, read_upper
from handrail.changes.layered.trial import OverlayChanges
from handrail.edit.diff import build_unified_diff
from handrail.policy.changeset import collect_moved_paths, rank_by_harm
from handrail.protocol.changes import Change, State
from handrail.sandbox.layer.layer import Overlay, OverlayMount
from handrail.store.change_log import Step
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace

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
