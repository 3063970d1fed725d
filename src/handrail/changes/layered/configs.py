"""The texts of configurations that a command changed, for policy, which reads no files itself."""

import contextlib
from collections.abc import Mapping
from typing import TypeGuard

from handrail.changes.layered.places import below_upper
from handrail.changes.layered.reading import read_before, read_now
from handrail.changes.layered.trial import Examined
from handrail.protocol.change import State
from handrail.sandbox.layer.layer import Layer
from handrail.workspace.workspace import Workspace

_LARGEST = 1 << 16
_MOST = 64
"""Configurations that are read; a repository has one. What is not read asks like anything that steers git."""


def configs_of(workspace: Workspace, layer: Layer, examined: Examined) -> Mapping[str, str]:
    """The text of each `.git/config` that is new or changed, by its path, and what it was before, by its hash."""
    found: dict[str, str] = {}
    numbers = [number for number, change in enumerate(examined.changes) if _is_config(change.path)]
    for number in numbers[:_MOST]:
        step, change = examined.steps[number], examined.changes[number]
        over, relative = below_upper(workspace, step.path, layer)
        if _is_small(step.after):
            _take(found, change.path, read_now(step.after, over, relative))
        if _is_small(step.before):
            _take(found, step.before.hash, read_before(step.before, over, relative))
    return found


def _is_config(path: str) -> bool:
    return path.split("/")[-2:] == [".git", "config"]


def _is_small(state: State | None) -> TypeGuard[State]:
    return state is not None and state.kind == "file" and state.size <= _LARGEST


def _take(found: dict[str, str], name: str, data: bytes | None) -> None:
    if data is not None:
        with contextlib.suppress(UnicodeDecodeError):
            found[name] = data.decode()
