"""Works a patch out in memory."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NoReturn

import msgspec

from handrail.edit.diff import Diff, build_edit_diff, build_unified_diff
from handrail.edit.patch.apply import apply_hunks
from handrail.edit.patch.hunks import FilePatch, Hunk, strip_byte_order_mark
from handrail.edit.patch.target import TextLines
from handrail.protocol.errors import ToolError
from handrail.tools.delete import NO_DIFF, build_removal
from handrail.tools.file_commit import FileChange, check_hard_links
from handrail.tools.file_state import TargetPath, TargetResolver, TextFile, build_too_large_error, decode_text_file
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import Content, PathState, build_executable_mode
from handrail.workspace.text import decode_text, find_byte_order_mark

# § [tools.patch_tree] The files that a patch is about, as they become while it is worked out in memory. Nothing is
# § written here. What is done to a file twice is done in order, the second time to what the first made. A file that
# § the patch moves away later on is no obstacle to another that takes its name: so two files can change names, as
# § git writes it. Nothing is written through a link that the patch takes away: its name is then that of a new file.

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


# § [tools.patch_deletion] Whether a file that a diff deletes is the one that the diff shows.

_AGAIN = "Read it, then make the patch anew."


def check_deleted_content(held: PatchFileState, file: FilePatch) -> None:
    """NO_MATCH where a file holds something else than a diff removes, or a link leads elsewhere."""
    path = clip_path(file.path)
    if held.is_link:
        _refuse_other_link(held, file, path)
    elif held.data is None:
        message = f"{path} is larger than 32 MiB, too large to compare it with the patch. Use *** Delete File: instead."
        raise ToolError("LIMIT_EXCEEDED", message)
    else:
        _refuse_other_text(decode_text_file(held.data, path), file, path)


def adapt_hunks(text: TextFile, file: FilePatch) -> Sequence[Hunk]:
    """The hunks as they fit a text, which has no byte order mark any more."""
    return tuple(map(strip_byte_order_mark, file.hunks)) if find_byte_order_mark(text.file.encoding) else file.hunks


def _refuse_other_text(text: TextFile, file: FilePatch, path: str) -> None:
    hunks, lines = adapt_hunks(text, file), TextLines(text.text)
    if lines.lines != [line for hunk in hunks for line in hunk.old]:
        raise ToolError("NO_MATCH", f"{path} holds other lines than the patch removes. {_AGAIN}")
    if lines.ended == hunks[-1].old_open:
        ends = "ends with a newline" if lines.ended else "does not end with a newline"
        raise ToolError("NO_MATCH", f"{path} {ends}, and the patch says otherwise. {_AGAIN}")


def _refuse_other_link(held: PatchFileState, file: FilePatch, path: str) -> None:
    shown = "\n".join(line for hunk in file.hunks for line in hunk.old)
    state = held.slot.found.state
    if state is None or Content.from_bytes(os.fsencode(shown)).hash != state.hash:
        raise ToolError("NO_MATCH", f"{path} is a link, and does not lead where the patch shows. Look at it with ls.")


# § [tools.patch_places] Where in a patch something is: what is refused says so.

_NOTHING = " Nothing was changed."


def add_patch_position(error: ToolError, file: FilePatch) -> ToolError:
    """A refusal that says where in the patch it is about, and that nothing was done."""
    known = error.named_details
    if "hunk" in known:
        return error
    message = error.message.removesuffix(_NOTHING).removesuffix(" Nothing was written.")
    message = message if message.endswith(".") else f"{message}."
    whole = f"Line {file.line} of the patch ({file.action} {clip_path(file.path)}): {message}{_NOTHING}"
    return ToolError(error.code, whole, details={**known, "path": file.path, "patchLine": file.line})


def add_position_by_path(error: ToolError, files: Iterable[FilePatch], path: str) -> ToolError:
    """The same for the first file of the patch that has a path."""
    return next((add_patch_position(error, file) for file in files if path in {file.path, file.target}), error)


def check_nested_paths(files: Sequence[FilePatch]) -> None:
    """INVALID_ARGUMENT where a path is the folder of another: nothing is a file and a folder at once."""
    named = {_parts(path): file for file in reversed(files) for path in (file.path, file.target) if path}
    # In this order a folder comes right before what is in it.
    for outer, inner in pairwise(sorted(named)):
        if outer == inner[: len(outer)]:
            raise _both(named[outer], named[inner], "/".join(outer), "/".join(inner))


def _both(one: FilePatch, other: FilePatch, outer: str, inner: str) -> ToolError:
    first, last = sorted((one, other), key=lambda file: file.line)
    message = (
        f"{clip_path(inner)} is in {clip_path(outer)}, which is a file in the patch (see line {first.line} too). "
        "Where one goes and the other comes, send two patches."
    )
    return add_patch_position(ToolError("INVALID_ARGUMENT", message), last)


def _parts(path: str) -> tuple[str, ...]:
    kept: list[str] = ["/"] if path.startswith("/") else []
    for part in path.split("/"):
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part not in {"", "."}:
            kept.append(part)
    return tuple(kept)


# § [tools.patch_plan] Works a patch out: every file looked at, every hunk put in its place, before anything is
# § written.

_NOWHERE = TargetPath("", "", b"", PathState(None))
"""Where a new file comes from."""


class PlannedFile(msgspec.Struct, frozen=True):
    """What a path is to be, and how its hunks were found."""

    change: FileChange
    strategies: tuple[str, ...] = ()
    moves_away: bool = False
    """Whether it goes because it is somewhere else now."""
    mode: int | None = None
    """Its permission bits, where they are worth telling: they change, or a new file can be executed."""


def plan_patch(looker: TargetResolver, files: Sequence[FilePatch]) -> list[PlannedFile]:
    """What becomes of every path; ToolError with the file and the line of the patch that cannot be done."""
    tree = PatchTree(looker, Counter(file.path for file in files if file.action == "move"))
    for file in files:
        looker.context.check_cancelled()
        try:
            _STEPS[file.action](tree, file)
        except ToolError as error:
            raise add_patch_position(error, file) from None
    outcome = tree.outcome()
    if not outcome:
        raise ToolError("NO_CHANGE", "After the patch every file is what it was. Nothing was changed.")
    _refuse_twins(outcome)
    moved = {held.slot.exact for _, held in outcome if held is not None and held.moved}
    return [_planned(slot, held, moves_away=slot.exact in moved) for slot, held in outcome]


def _refuse_twins(outcome: Sequence[tuple[TargetPath, PatchFileState | None]]) -> None:
    """Two names of one file are written in place, the second over what the first wrote."""
    names: dict[tuple[int, int], str] = {}
    for slot, held in outcome:
        now = slot.found.current
        if held is None or now is None or now.status.st_nlink < 2:
            continue
        other = names.setdefault((now.status.st_dev, now.status.st_ino), slot.path)
        if other != slot.path:
            message = (
                f"{clip_path(other)} and {clip_path(slot.path)} are two names of one file. Patch it under one of them."
            )
            raise ToolError("CONFLICT", f"{message} Nothing was changed.", details={"path": slot.path})


def _add(tree: PatchTree, file: FilePatch) -> None:
    mode = build_executable_mode(None) if file.executable else None
    data = (file.content or "").encode()
    tree.put(file.path, PatchFileState(_NOWHERE, data, mode))


def _update(tree: PatchTree, file: FilePatch) -> None:
    tree.change(file.path, _patched(tree.get_file(file.path), file))


def _delete(tree: PatchTree, file: FilePatch) -> None:
    held = tree.take(file.path)
    if file.hunks:
        check_deleted_content(held, file)


def _move(tree: PatchTree, file: FilePatch) -> None:
    if file.target == file.path:
        _update(tree, file)
        return
    patched = _patched(tree.take(file.path), file)
    tree.put(file.target or "", msgspec.structs.replace(_elsewhere(patched), moved=patched.slot is not _NOWHERE))


def _copy(tree: PatchTree, file: FilePatch) -> None:
    copied = _elsewhere(_patched(tree.original(file.path), file))
    tree.put(file.target or "", msgspec.structs.replace(copied, diff=None, slot=_NOWHERE))


def _elsewhere(held: PatchFileState) -> PatchFileState:
    """A file under a new name: with its mode, but without rights of an owner that it may not have there."""
    return msgspec.structs.replace(held, mode=held.mode & 0o777 if held.mode is not None else None)


_STEPS = {"add": _add, "update": _update, "delete": _delete, "move": _move, "copy": _copy}


def _not_held(held: PatchFileState, file: FilePatch) -> ToolError:
    if not held.is_link:
        return build_too_large_error(file.path)
    message = f"{clip_path(file.path)} is a link. Name the file that it leads to, or delete it and add another."
    return ToolError("NOT_A_FILE", message)


def _patched(held: PatchFileState, file: FilePatch) -> PatchFileState:
    """A file with its hunks in it."""
    if held.data is None:
        raise _not_held(held, file)
    path = clip_path(file.path)
    mode = held.mode if file.executable is None else build_executable_mode(held.mode, on=file.executable)
    if not file.hunks:
        return msgspec.structs.replace(held, mode=mode)
    text = decode_text_file(held.data, path)
    found = apply_hunks(text.text, adapt_hunks(text, file), path, text.readable)
    made = text.rewritten(found.replacements, _given(file.hunks), path)
    check_hard_links(held.slot.found.current if not file.target else None, made.data, file.path)
    is_first = held.slot.found.current is not None and held.data is held.slot.found.current.data
    shown = held.slot.real if file.target is None else file.target
    diff = build_edit_diff(text.readable, found.replacements, shown) if is_first else None
    return PatchFileState(held.slot, made.data, mode, diff, (*held.strategies, *found.strategies), held.moved)


def _given(hunks: Sequence[Hunk]) -> str:
    """The new lines, with the endings that the patch has for them."""
    new = "".join(f"{line.text}\n" for hunk in hunks for line in hunk.lines if line.sign == "+")
    is_last = hunks[-1].new_open and hunks[-1].lines[-1].sign == "+"  # else the open line is one that stays
    return new.removesuffix("\n") if is_last else new


def _planned(slot: TargetPath, held: PatchFileState | None, *, moves_away: bool) -> PlannedFile:
    if held is None or held.data is None:
        gone = FileChange(slot, None, None, NO_DIFF) if moves_away else build_removal(slot)
        return PlannedFile(gone, moves_away=moves_away)
    renamed = held.slot.real if held.moved and held.slot is not slot else None
    source = slot if renamed is None else held.slot
    diff = held.diff if held.diff is not None else _diff(source, held.data, slot.real)
    mode = _telling_mode(source, held)
    heading = "".join(_heading(slot, source, mode))
    diff = msgspec.structs.replace(diff, text=f"{heading}{diff.text}")
    becomes = FileChange(slot, held.data, held.mode, diff, renamed, binary=decode_text(held.data) is None)
    return PlannedFile(becomes, held.strategies, mode=mode)


def _heading(slot: TargetPath, source: TargetPath, mode: int | None) -> Iterator[str]:
    """What a diff does not show."""
    if source is not slot:
        yield f"rename from {source.real}\nrename to {slot.real}\n"
    if slot.is_link:
        yield f"(the link {slot.real} becomes a file)\n"
    if mode is not None:
        yield f"(the mode of {slot.real} {'becomes' if source.found.current else 'is'} {mode:04o})\n"


def _telling_mode(source: TargetPath, held: PatchFileState) -> int | None:
    before = source.found.state
    if held.mode is None or before is None or before.mode is None:
        return held.mode if held.mode is not None and held.mode & 0o111 else None
    return held.mode if held.mode != before.mode else None


def _diff(before: TargetPath, data: bytes, real: str) -> Diff:
    """The difference between what is on the disk and what is to be there."""
    current = before.found.current
    new = decode_text(data)
    old = decode_text(current.data) if current is not None and current.data is not None else None
    if new is None or (current is not None and old is None):
        return NO_DIFF
    return build_unified_diff(old.text if old is not None else None, new.text, real)
