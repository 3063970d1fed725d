"""The texts of configurations that a command changed, for policy, which reads no files itself."""

import contextlib
from collections.abc import Mapping
from typing import TypeGuard

from handrail.changes.history import History
from handrail.changes.layered.places import resolve_overlay_path
from handrail.changes.layered.reading import read_lower, read_upper
from handrail.changes.layered.trial import OverlayChanges
from handrail.changes.looking import probe_path
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.sandbox.layer.layer import Overlay
from handrail.store.change_log import Step
from handrail.workspace.workspace import Workspace

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
