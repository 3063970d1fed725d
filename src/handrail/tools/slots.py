"""Looks at a path that is about to be written or removed, one of many: nothing is held open afterwards."""

import contextlib
import errno
import os
import stat

import msgspec

from handrail.policy.names import find_protection
from handrail.protocol.changes import State
from handrail.protocol.errors import ToolError
from handrail.tools.contract import MAX_TEXT_BYTES, Context, ReadMarks
from handrail.tools.looking import FileState, check_file_size, open_target, read_file_state
from handrail.tools.marks import hash_seen_page
from handrail.tools.records import Records
from handrail.workspace.errors import clip_path, to_tool_error
from handrail.workspace.file_state import PathState, read_state
from handrail.workspace.resolve import ResolvedParent


class TargetPath(msgspec.Struct, frozen=True):
    """A path, and what is there."""

    path: str
    """As the call named it."""
    real: str
    """As results name it."""
    exact: bytes
    """As the system spells it."""
    found: PathState
    missing: tuple[str, ...] = ()
    """Folders on the way that are not there yet."""
    unread: bool = False
    """Whether there is something that the session never saw."""

    @property
    def is_link(self) -> bool:
        """Whether a link is there."""
        return self.found.state is not None and self.found.state.kind == "link"


class ExistingTarget(TargetPath, frozen=True, kw_only=True):
    """A path where something is."""

    state: State


class TargetResolver(msgspec.Struct, frozen=True):
    """Looks on behalf of a call."""

    context: Context
    seen: ReadMarks
    records: Records
    doing: str

    def to_write(self, path: str) -> TargetPath:
        """A path that is to be written: links are followed, as write and edit do."""
        with open_target(self.context, path) as (landing, real):
            check_file_size(landing, path)
            found = read_file_state(landing, real, path, self.seen, self.records, keep=MAX_TEXT_BYTES, doing=self.doing)
            found.refuse_stale()
            exact = self.context.workspace.build_exact_path(landing)
            there = PathState(found.before.to_state(), found.before) if found.before else PathState(None)
            return TargetPath(path, real, exact, there, landing.missing, found.unread)

    def to_remove(self, path: str) -> ExistingTarget:
        """A path that is to be removed, which is the link itself where it is one; NOT_FOUND when nothing is there."""
        _refuse_no_name(path)
        landing, real = self.context.workspace.resolve_for_removal(path)
        with landing:
            try:
                return self._there(landing, real, path)
            except OSError as error:
                raise to_tool_error(error, path) from None

    def name_of(self, path: str) -> bytes | None:
        """How the system spells a name, which may be that of a link; None where it has no folder."""
        try:
            landing, _ = self.context.workspace.resolve_for_removal(path)
        except ToolError:
            return None
        with landing:
            return self.context.workspace.build_exact_path(landing)

    def _there(self, landing: ResolvedParent, real: str, path: str) -> ExistingTarget:
        if find_protection(real) == "credential":
            raise ToolError("POLICY_DENIED", f"Rule fs.secret forbids {self.doing} {clip_path(path)}.")
        _refuse_special(landing)
        found = read_state(landing, MAX_TEXT_BYTES)
        if found.state is None:
            raise self.context.workspace.not_found(path, "file")
        if found.state.kind == "folder":
            message = f"{clip_path(path)} is a directory, and those are not deleted. Delete its files one by one."
            raise ToolError("NOT_A_FILE", message)
        mark = self.seen.get_mark(real)
        if found.current is not None:
            part = hash_seen_page(landing.folder, landing.name, mark)
            FileState(found.current, path, self.doing, self.records, mark, part).refuse_stale()
        exact = self.context.workspace.build_exact_path(landing)
        return ExistingTarget(path, real, exact, found, unread=mark is None, state=found.state)


def _refuse_no_name(path: str) -> None:
    if path.rpartition("/")[2] in {"", ".", ".."} and path:
        message = f"{clip_path(path)} names a directory, and those are not deleted. Give the path of a file."
        raise ToolError("NOT_A_FILE", message)


def _refuse_special(landing: ResolvedParent) -> None:
    """A FIFO, a socket or a device is no file, and could not be brought back."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), landing.name)
