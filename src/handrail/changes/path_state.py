"""The state of a path before a step."""

import os
from collections.abc import Iterable, Iterator

import msgspec

from handrail.changes.history import History, build_backup_error
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.workspace.errors import to_tool_error
from handrail.workspace.file_state import PathState, read_state
from handrail.workspace.workspace import Workspace

MAX_PACKED_BYTES = 1 << 16
"""Bytes up to which a content is kept together with others."""

_ELSEWHERE = PathState(State(kind="link", hash="elsewhere"))
"""A link or a file is on the way there: a state that nothing agrees with."""


class PathProbe:
    """Looks at the paths of one change set, what is above others first.

    Where the set itself puts a link or a file in the place of a folder, or the other way round, nothing is below it.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._in_the_way: set[bytes] = set()

    def at(self, path: bytes, keep: int = 0) -> PathState:
        """What is at a path now."""
        return self.instead(path, probe_path(self._workspace, path, keep))

    def instead(self, path: bytes, found: PathState) -> PathState:
        """What is to be taken as found at a path that cannot be reached."""
        return PathState(None) if found is _ELSEWHERE and self.is_below(path) else found

    def is_below(self, path: bytes) -> bool:
        """Whether something of the set is in the way to a path."""
        parts = path.split(b"/")
        return any(b"/".join(parts[:end]) in self._in_the_way for end in range(1, len(parts)))

    def note(self, path: bytes, now: State | None) -> None:
        """Remembers a path that is where the set says."""
        if now is not None and now.kind != "folder":
            self._in_the_way.add(path)


def probe_path(workspace: Workspace, path: bytes, keep: int = 0) -> PathState:
    """What is at a path now, the bytes of a file kept up to a size."""
    try:
        with workspace.open_parent(path) as landing:
            return read_state(landing, keep)
    except OSError as error:
        raise to_tool_error(error, os.fsdecode(path)) from None
    except ToolError as error:
        if error.code != "CONFLICT":
            raise
        return _ELSEWHERE


def keep_all(workspace: Workspace, history: History, places: Iterable[tuple[bytes, PathState]]) -> None:
    """Keeps what files and links hold, so that it can come back; ToolError, and nothing is changed, when that cannot
    be. The places may be looked at while they are asked for."""
    try:
        history.blobs.keep_all(_contents(workspace, history, places))
    except StoreError as error:
        raise build_backup_error("What is to be changed", error) from None


def _contents(
    workspace: Workspace, history: History, places: Iterable[tuple[bytes, PathState]]
) -> Iterator[tuple[str, bytes]]:
    for path, found in places:
        if found.current is not None and found.current.data is not None and len(found.current.data) <= MAX_PACKED_BYTES:
            yield found.current.hash, found.current.data
        elif found.current is not None or (found.state is not None and found.state.kind == "link"):
            yield from _by_itself(workspace, history, path, found)


def _by_itself(workspace: Workspace, history: History, path: bytes, found: PathState) -> Iterator[tuple[str, bytes]]:
    try:
        with workspace.open_parent(path) as landing:
            if found.current is not None:
                history.keep(found.current, landing)
            elif found.state is not None:
                yield found.state.hash, os.fsencode(os.readlink(landing.name, dir_fd=landing.folder))
    except OSError as error:
        raise to_tool_error(error, os.fsdecode(path)) from None


def strip_data(found: PathState) -> PathState:
    """The same without the bytes: there may be very many."""
    current = found.current
    if current is None or current.data is None:
        return found
    return PathState(found.state, msgspec.structs.replace(current, digest=current.hash, data=None, start=b""))
