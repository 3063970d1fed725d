"""Looks at a path that is about to be written or removed, one of many: nothing is held open afterwards."""

import contextlib
import errno
import os
import stat

import msgspec

from handrail.policy.names import protection
from handrail.protocol.change import State
from handrail.protocol.error import ToolError
from handrail.tools.contract import Context, Seen
from handrail.tools.edit import LONGEST
from handrail.tools.looking import Look, landed, look, refuse_large
from handrail.tools.marks import part_of
from handrail.tools.saving import Records
from handrail.workspace.errors import clipped, tool_error
from handrail.workspace.exact import Found, exact_path, found_at, state_of
from handrail.workspace.walk import Landing


class Slot(msgspec.Struct, frozen=True):
    """A path, and what is there."""

    path: str
    """As the call named it."""
    real: str
    """As results name it."""
    exact: bytes
    """As the system spells it."""
    found: Found
    missing: tuple[str, ...] = ()
    """Folders on the way that are not there yet."""
    unread: bool = False
    """Whether there is something that the session never saw."""

    @property
    def is_link(self) -> bool:
        """Whether a link is there."""
        return self.found.state is not None and self.found.state.kind == "link"


class There(Slot, frozen=True, kw_only=True):
    """A path where something is."""

    state: State


class Looker(msgspec.Struct, frozen=True):
    """Looks on behalf of a call."""

    context: Context
    seen: Seen
    records: Records
    doing: str

    def to_write(self, path: str) -> Slot:
        """A path that is to be written: links are followed, as write and edit do."""
        with landed(self.context, path) as (landing, real):
            refuse_large(landing, path)
            found = look(landing, real, path, self.seen, self.records, keep=LONGEST, doing=self.doing)
            found.refuse_stale()
            exact = exact_path(self.context.workspace, landing)
            there = Found(state_of(found.before), found.before) if found.before else Found(None)
            return Slot(path, real, exact, there, landing.missing, found.unread)

    def to_remove(self, path: str) -> There:
        """A path that is to be removed, which is the link itself where it is one; NOT_FOUND when nothing is there."""
        _refuse_no_name(path)
        landing, real = self.context.workspace.land_on_name(path)
        with landing:
            try:
                return self._there(landing, real, path)
            except OSError as error:
                raise tool_error(error, path) from None

    def name_of(self, path: str) -> bytes | None:
        """How the system spells a name, which may be that of a link; None where it has no folder."""
        try:
            landing, _ = self.context.workspace.land_on_name(path)
        except ToolError:
            return None
        with landing:
            return exact_path(self.context.workspace, landing)

    def _there(self, landing: Landing, real: str, path: str) -> There:
        if protection(real) == "credential":
            raise ToolError("POLICY_DENIED", f"Rule fs.secret forbids {self.doing} {clipped(path)}.")
        _refuse_special(landing)
        found = found_at(landing, LONGEST)
        if found.state is None:
            raise self.context.workspace.not_found(path, "file")
        if found.state.kind == "folder":
            message = f"{clipped(path)} is a directory, and those are not deleted. Delete its files one by one."
            raise ToolError("NOT_A_FILE", message)
        mark = self.seen.seen(real)
        if found.current is not None:
            part = part_of(landing.folder, landing.name, mark)
            Look(found.current, path, self.doing, self.records, mark, part).refuse_stale()
        exact = exact_path(self.context.workspace, landing)
        return There(path, real, exact, found, unread=mark is None, state=found.state)


def _refuse_no_name(path: str) -> None:
    if path.rpartition("/")[2] in {"", ".", ".."} and path:
        message = f"{clipped(path)} names a directory, and those are not deleted. Give the path of a file."
        raise ToolError("NOT_A_FILE", message)


def _refuse_special(landing: Landing) -> None:
    """A FIFO, a socket or a device is no file, and could not be brought back."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), landing.name)
