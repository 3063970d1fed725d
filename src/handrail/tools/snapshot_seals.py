"""What a command cannot write to that runs on the files themselves, where nobody was asked about it."""

import os
from collections.abc import Iterator

from handrail.changes.snapshots.scanning import OTHER, REPOSITORY
from handrail.changes.snapshots.watch import CommandWatch
from handrail.protocol.changes import Change
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import CommandContext
from handrail.workspace.workspace import Workspace

MAX_READ_ONLY_PATHS = 1_000
"""Paths that can be made read-only to one command, beside what is hidden from it."""
_STEERS = ("hooks", "config", "config.worktree", "info", "modules", "worktrees", "commondir")
"""What in a repository says which programs git runs; commits write none of it."""


def list_read_only_paths(context: CommandContext, watch: CommandWatch, commands: CommandEnvironment) -> tuple[str, ...]:
    """Absolute paths of files and folders. Whoever was allowed only since undo covers it writes to nothing that undo
    does not cover; who was allowed otherwise may, but for what steers git, where changing that asks."""
    if context.answered or commands.tier < 2:
        return ()  # with a yes it may; and Landlock cannot seal a file without closing the folder around it
    if context.needs_undo() is not None:
        return tuple(one.path for one in watch.uncovered() if one.why != OTHER and _is_there(one.path))
    steering = Change(path=f"{REPOSITORY}/config", action="modified")
    if context.judge((steering,), {}).decision == "allow":
        return ()
    return tuple(_steering(context.workspace))


def _steering(workspace: Workspace) -> Iterator[str]:
    for root in workspace.roots:
        if root.writable:
            places = (os.path.join(root.path, REPOSITORY, name) for name in _STEERS)
            yield from (place for place in places if _is_there(place))


def _is_there(path: str) -> bool:
    """As a file or a folder of its own: a link has nothing to be sealed but where it leads."""
    return (os.path.isfile(path) or os.path.isdir(path)) and os.path.realpath(path) == path
