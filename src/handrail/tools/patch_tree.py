"""The files that a patch is about, as they become while it is worked out in memory. Nothing is written here.

What is done to a file twice is done in order, the second time to what the first made. A file that the patch moves away
later on is no obstacle to another that takes its name: so two files can change names, as git writes it. Nothing is
written through a link that the patch takes away: its name is then that of a new file.
"""

from typing import NoReturn

import msgspec

from handrail.edit.diff import Diff
from handrail.protocol.errors import ToolError
from handrail.tools.slots import TargetPath, TargetResolver
from handrail.workspace.errors import clip_path

MAX_TOTAL_BYTES = 256 * 1024 * 1024
"""Bytes of all files together, before and after, that are held in memory."""

MAX_NEW_FOLDERS = 100
"""New folders on the way to a file: each is a step of its own."""


class PatchFileState(msgspec.Struct, frozen=True):
    """A file as it is by now."""

    slot: TargetPath
    """Where it came from."""
    data: bytes | None
    """None where it is too large to be held, or a link."""
    mode: int | None
    """Permission bits; None for those that a new file has."""
    diff: Diff | None = None
    """What made it out of what is on the disk, where that was one step."""
    strategies: tuple[str, ...] = ()
    moved: bool = False
    """Whether it has another name than it had."""

    @property
    def is_link(self) -> bool:
        """Whether it is a link, as it was found."""
        return self.data is None and self.slot.is_link


class PatchTree:
    """Paths and what becomes of them."""

    def __init__(self, looker: TargetResolver, leaving: dict[str, int]) -> None:
        self._looker = looker
        self._leaving = leaving
        """How often a path, as the patch spells it, is still to be moved away."""
        self._paths: dict[str, TargetPath] = {}
        """Of files that are written, by how the patch spells them."""
        self._slots: dict[bytes, TargetPath] = {}
        self._now: dict[bytes, PatchFileState | None] = {}
        self._waiting: dict[bytes, PatchFileState] = {}
        """What is still to be taken away, where its name is taken already."""
        self._links: set[bytes] = set()
        """Those that were taken away."""
        self._bytes = 0

    def get_file(self, path: str) -> PatchFileState:
        """The file that a path leads to; NOT_FOUND when there is none."""
        slot = self._written(path)
        return self._now[slot.exact] or self._refuse_missing(path, slot)

    def original(self, path: str) -> PatchFileState:
        """The file as it is on the disk, whatever the patch does to it: that is what a diff of git means by a copy."""
        slot = self._written(path)
        return _as_found(slot) or self._refuse_missing(path, slot)

    def put(self, path: str, held: PatchFileState) -> None:
        """Makes a file new; CONFLICT where there is one that stays."""
        slot = self._written(path)
        _refuse_deep(path, slot)
        before = self._now[slot.exact]
        if before is not None:
            if not self._leaving.get(path):
                message = f"{clip_path(path)} is there already. Update it, or delete it first, in the same patch."
                raise ToolError("CONFLICT", message, details={"path": path})
            self._waiting[slot.exact] = before
        self._set(slot, held)

    def change(self, path: str, held: PatchFileState) -> None:
        """Makes a file another one, where it is."""
        self._set(self._written(path), held)

    def take(self, path: str) -> PatchFileState:
        """Takes a file or a link away; NOT_FOUND when there is none."""
        self._leaving[path] = self._leaving.get(path, 1) - 1
        slot = self._removed(path)
        waiting = self._waiting.pop(slot.exact, None)
        if waiting is not None:
            return waiting
        held = self._now[slot.exact] or self._refuse_missing(path, slot)
        if held.is_link:
            self._refuse_used(path, slot)
            self._links.add(slot.exact)
        self._now[slot.exact] = None
        return held

    def outcome(self) -> list[tuple[TargetPath, PatchFileState | None]]:
        """What was on the disk, and what is to be there: every path that is not as it was."""
        return [(slot, self._now[exact]) for exact, slot in self._slots.items() if _differs(slot, self._now[exact])]

    def _written(self, path: str) -> TargetPath:
        for part in _ways_to(path) if self._links else ():
            name = self._looker.name_of(part)
            if name in self._links and part != path:
                raise _taken_link(path, part)
            if name in self._links:
                return self._slots[name]
        if path not in self._paths:
            self._paths[path] = self._known(self._looker.to_write(path))
        return self._paths[path]

    def _removed(self, path: str) -> TargetPath:
        """The place of a name that goes: on the disk, or only in the patch so far."""
        try:
            return self._known(self._looker.to_remove(path))
        except ToolError as error:
            if error.code != "NOT_FOUND" or path not in self._paths:
                raise
            return self._paths[path]

    def _refuse_used(self, path: str, link: TargetPath) -> None:
        """What was found through a link would be written through it."""
        for used in self._paths:
            if link.exact in map(self._looker.name_of, _ways_to(used)):
                raise _taken_link(used, path)

    def _refuse_missing(self, path: str, slot: TargetPath) -> NoReturn:
        if slot.found.state is not None:
            raise ToolError("NOT_FOUND", f"{clip_path(path)} is taken away before that, by the same patch.")
        raise self._looker.context.workspace.not_found(path, "file")

    def _known(self, slot: TargetPath) -> TargetPath:
        known = self._slots.get(slot.exact)
        if known is not None:
            return known
        self._slots[slot.exact] = slot
        self._now[slot.exact] = _as_found(slot)
        self._count(slot.found.current.data if slot.found.current else None)
        return slot

    def _set(self, slot: TargetPath, held: PatchFileState) -> None:
        self._now[slot.exact] = held
        self._count(held.data)

    def _count(self, data: bytes | None) -> None:
        self._bytes += len(data or b"")
        if self._bytes > MAX_TOTAL_BYTES:
            size = MAX_TOTAL_BYTES >> 20
            message = f"The files of the patch have more than {size} MiB together. Send several smaller patches."
            raise ToolError("LIMIT_EXCEEDED", message)


def _ways_to(path: str) -> list[str]:
    """A path, and those of the folders on the way to it."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1) if parts[end - 1]]


def _taken_link(path: str, link: str) -> ToolError:
    message = f"{clip_path(link)} is a link that the patch takes away, and {clip_path(path)} leads through it."
    return ToolError("CONFLICT", f"{message} Name the file that it leads to, or send two patches.")


def _refuse_deep(path: str, slot: TargetPath) -> None:
    if len(slot.missing) > MAX_NEW_FOLDERS:
        count = len(slot.missing)
        message = f"{clip_path(path)} needs {count} new folders, one in the other; {MAX_NEW_FOLDERS} are the most."
        raise ToolError("LIMIT_EXCEEDED", message)


def _as_found(slot: TargetPath) -> PatchFileState | None:
    state, current = slot.found.state, slot.found.current
    if state is None:
        return None
    return PatchFileState(slot, current.data if current is not None else None, state.mode)


def _differs(slot: TargetPath, held: PatchFileState | None) -> bool:
    found = _as_found(slot)
    if held is None or found is None:
        return held is not found
    return held is not found and (held.data, held.mode) != (found.data, found.mode)
