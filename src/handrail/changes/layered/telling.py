"""The differences as people and models see them: what was renamed, where links lead."""

import os
import posixpath
from collections.abc import Iterable
from itertools import pairwise

from msgspec.structs import replace

from handrail.changes.layered.comparing import OverlayDifference
from handrail.changes.planned import build_change
from handrail.edit.diff import Diff
from handrail.protocol.changes import Change
from handrail.protocol.wire import escape_surrogates
from handrail.store.change_log import Step
from handrail.workspace.workspace import Workspace

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
