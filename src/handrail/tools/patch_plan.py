"""Works a patch out in memory, before anything is written."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NoReturn

import msgspec
from msgspec.structs import replace

from handrail.edit.diff import NO_DIFF, Diff, build_edit_diff, build_unified_diff
from handrail.edit.patch.apply import apply_hunks
from handrail.edit.patch.hunks import FilePatch, Hunk, strip_byte_order_mark
from handrail.edit.patch.target import TextLines
from handrail.protocol.errors import ToolError
from handrail.tools.file_commit import FileChange, build_removal, check_hard_links
from handrail.tools.file_tool import FileTarget, FileView, build_too_large_error
from handrail.tools.text_edit import TextFile, decode_text_file
from handrail.workspace.file_state import Content, build_executable_mode
from handrail.workspace.roots import clip_path
from handrail.workspace.text import decode_text, find_byte_order_mark

MAX_TOTAL_BYTES = 256 * 1024 * 1024
"""Bytes of all files together, before and after, that are held in memory."""
MAX_NEW_FOLDERS = 100
"""New folders on the way to a file: each is a step of its own."""
_ADVICE = "Read it, then write a new patch."
_UNCHANGED = " Nothing was changed."


class PlannedFile(msgspec.Struct, frozen=True):
    """What a path becomes, and how its hunks were found."""

    change: FileChange
    strategies: tuple[str, ...] = ()
    moves_away: bool = False
    """Whether the path is removed because its file moves to another path."""
    shown_mode: int | None = None
    """Permission bits, if they change or a new file can be executed."""


def plan_patch(view: FileView, files: Sequence[FilePatch]) -> list[PlannedFile]:
    """What every path becomes. ToolError names the file and the line of the patch that cannot be applied."""
    tree = _PatchTree(view, Counter(file.path for file in files if file.action == "move"))
    for file in files:
        view.context.check_cancelled()
        try:
            _ACTIONS[file.action](tree, file)
        except ToolError as error:
            raise add_patch_position(error, file) from None
    outcome = tree.list_changed()
    if not outcome:
        raise ToolError("NO_CHANGE", "After the patch every file has its old content. Nothing was changed.")
    _refuse_hard_links(outcome)
    moved = {file.source.exact for _, file in outcome if file is not None and file.moved}
    return [_plan_file(target, file, moves_away=target.exact in moved) for target, file in outcome]


def _refuse_hard_links(outcome: "_Outcome") -> None:
    """Refuses two names of one file: it is written in place, so the second name would overwrite the first."""
    names: dict[tuple[int, int], str] = {}
    for target, file in outcome:
        if file is None or target.snapshot is None or target.snapshot.status.st_nlink < 2:
            continue
        path, status = target.path, target.snapshot.status
        other = names.setdefault((status.st_dev, status.st_ino), path)
        if other != path:
            message = f"{clip_path(other)} and {clip_path(path)} are two names of one file. Patch it under one of them."
            raise ToolError("CONFLICT", f"{message} Nothing was changed.", details={"path": path})


def _add(tree: "_PatchTree", patch: FilePatch) -> None:
    mode = build_executable_mode(None) if patch.executable else None
    tree.put(patch.path, _PatchedFile(_NEW_FILE, (patch.content or "").encode(), mode))


def _update(tree: "_PatchTree", patch: FilePatch) -> None:
    tree.change(patch.path, _apply_hunks(tree.get_file(patch.path), patch))


def _delete(tree: "_PatchTree", patch: FilePatch) -> None:
    file = tree.take(patch.path)
    if patch.hunks:
        _check_deleted_content(file, patch)


def _move(tree: "_PatchTree", patch: FilePatch) -> None:
    if patch.target == patch.path:
        _update(tree, patch)
        return
    file = _apply_hunks(tree.take(patch.path), patch)
    tree.put(patch.target or "", replace(_clear_special_bits(file), moved=file.source is not _NEW_FILE))


def _copy(tree: "_PatchTree", patch: FilePatch) -> None:
    file = _clear_special_bits(_apply_hunks(tree.get_original(patch.path), patch))
    tree.put(patch.target or "", replace(file, diff=None, source=_NEW_FILE))


_ACTIONS = {"add": _add, "update": _update, "delete": _delete, "move": _move, "copy": _copy}


def _clear_special_bits(file: "_PatchedFile") -> "_PatchedFile":
    """The file under a new name, where its owner may not have the rights of setuid and setgid."""
    return replace(file, mode=file.mode & 0o777 if file.mode is not None else None)


def _apply_hunks(file: "_PatchedFile", patch: FilePatch) -> "_PatchedFile":
    if file.data is None:
        raise _build_no_text_error(file, patch)
    path, source = clip_path(patch.path), file.source
    mode = file.mode if patch.executable is None else build_executable_mode(file.mode, on=patch.executable)
    if not patch.hunks:
        return replace(file, mode=mode)
    text = decode_text_file(file.data, path)
    found = apply_hunks(text.text, _adapt_hunks(text, patch), path, text.readable)
    rewrite = text.rewrite(found.replacements, _join_new_lines(patch.hunks), path)
    if not patch.target and source.snapshot is not None:
        check_hard_links(replace(source, path=patch.path), rewrite.data)
    is_first = source.snapshot is not None and file.data is source.data
    shown = source.real if patch.target is None else patch.target
    diff = build_edit_diff(text.readable, found.replacements, shown) if is_first else None
    return _PatchedFile(source, rewrite.data, mode, diff, (*file.strategies, *found.strategies), file.moved)


def _build_no_text_error(file: "_PatchedFile", patch: FilePatch) -> ToolError:
    if not file.is_link:
        return build_too_large_error(patch.path)
    message = f"{clip_path(patch.path)} is a link. Name the file that it leads to, or delete it and add another."
    return ToolError("NOT_A_FILE", message)


def _join_new_lines(hunks: Sequence[Hunk]) -> str:
    """The new lines, with the line endings of the patch."""
    new = "".join(f"{line.text}\n" for hunk in hunks for line in hunk.lines if line.sign == "+")
    is_last = hunks[-1].new_open and hunks[-1].lines[-1].sign == "+"  # else the open line is one that stays
    return new.removesuffix("\n") if is_last else new


def _plan_file(target: FileTarget, file: "_PatchedFile | None", *, moves_away: bool) -> PlannedFile:
    if file is None or file.data is None:
        removal = FileChange(target, None, NO_DIFF) if moves_away else build_removal(target)
        return PlannedFile(removal, moves_away=moves_away)
    renamed_from = file.source.real if file.moved and file.source is not target else None
    source = target if renamed_from is None else file.source
    diff = file.diff if file.diff is not None else _compare(source, file.data, target.real)
    mode = _find_shown_mode(source, file)
    heading = "".join(_list_headings(target, source, mode))
    diff = replace(diff, text=f"{heading}{diff.text}")
    change = FileChange(target, file.data, diff, file.mode, renamed_from, binary=decode_text(file.data) is None)
    return PlannedFile(change, file.strategies, shown_mode=mode)


def _list_headings(target: FileTarget, source: FileTarget, mode: int | None) -> Iterator[str]:
    """Lines for changes that a diff does not show."""
    if source is not target:
        yield f"rename from {source.real}\nrename to {target.real}\n"
    if target.is_link:
        yield f"(the link {target.real} becomes a file)\n"
    if mode is not None:
        yield f"(the mode of {target.real} {'becomes' if source.snapshot else 'is'} {mode:04o})\n"


def _find_shown_mode(source: FileTarget, file: "_PatchedFile") -> int | None:
    if file.mode is None or source.mode is None:
        return file.mode if file.mode is not None and file.mode & 0o111 else None
    return file.mode if file.mode != source.mode else None


def _compare(source: FileTarget, data: bytes, real: str) -> Diff:
    new = decode_text(data)
    old = decode_text(source.data) if source.data is not None else None
    if new is None or (source.snapshot is not None and old is None):
        return NO_DIFF
    return build_unified_diff(old.text if old is not None else None, new.text, real)


class _PatchedFile(msgspec.Struct, frozen=True):
    """A file as the patch has made it so far."""

    source: FileTarget
    data: bytes | None
    """None if the file is a link or too large for memory."""
    mode: int | None
    """Permission bits. None: those of a new file."""
    diff: Diff | None = None
    """The difference to the disk, if one step made it."""
    strategies: tuple[str, ...] = ()
    moved: bool = False

    @property
    def is_link(self) -> bool:
        return self.data is None and self.source.is_link


_NEW_FILE = FileTarget("", "", b"")
"""The source of a file that the patch adds."""
_Outcome = list[tuple[FileTarget, _PatchedFile | None]]
"""What is at a path, and what the patch makes of it. None: it is removed."""


class _PatchTree:
    """The files of a patch, as they become in memory.

    A second change of a file applies to what the first made. A file that the patch moves away later does not block
    another that takes its name, so two files can swap names as git writes it. Nothing is written through a link that
    the patch removes: its name becomes that of a new file.
    """

    def __init__(self, view: FileView, pending_moves: dict[str, int]) -> None:
        """`pending_moves`: how often a path, as the patch spells it, is still to be moved away."""
        self._view = view
        self._pending_moves = pending_moves
        self._written: dict[str, FileTarget] = {}
        """By how the patch spells them."""
        self._targets: dict[bytes, FileTarget] = {}
        self._files: dict[bytes, _PatchedFile | None] = {}
        self._replaced: dict[bytes, _PatchedFile] = {}
        """Files that are still to be moved away, though another has their name already."""
        self._removed_links: set[bytes] = set()
        self._bytes = 0

    def get_file(self, path: str) -> _PatchedFile:
        """The file that a path leads to. NOT_FOUND if there is none."""
        target = self._look_to_write(path)
        return self._files[target.exact] or self._refuse_missing(path, target)

    def get_original(self, path: str) -> _PatchedFile:
        """The file as it is on the disk, since git copies that."""
        target = self._look_to_write(path)
        return _read_original(target) or self._refuse_missing(path, target)

    def put(self, path: str, file: _PatchedFile) -> None:
        """Adds a file. CONFLICT if there is one that stays."""
        target = self._look_to_write(path)
        _refuse_deep(path, target)
        before = self._files[target.exact]
        if before is not None:
            if not self._pending_moves.get(path):
                message = f"{clip_path(path)} already exists. Update it, or delete it first, in the same patch."
                raise ToolError("CONFLICT", message, details={"path": path})
            self._replaced[target.exact] = before
        self._set(target, file)

    def change(self, path: str, file: _PatchedFile) -> None:
        self._set(self._look_to_write(path), file)

    def take(self, path: str) -> _PatchedFile:
        """Removes a file or a link. NOT_FOUND if there is none."""
        self._pending_moves[path] = self._pending_moves.get(path, 1) - 1
        target = self._look_to_remove(path)
        replaced = self._replaced.pop(target.exact, None)
        if replaced is not None:
            return replaced
        file = self._files[target.exact] or self._refuse_missing(path, target)
        if file.is_link:
            for used in self._written:
                if target.exact in map(self._view.find_exact_name, _list_prefixes(used)):
                    raise _build_link_error(used, path)
            self._removed_links.add(target.exact)
        self._files[target.exact] = None
        return file

    def list_changed(self) -> _Outcome:
        pairs = ((target, self._files[exact]) for exact, target in self._targets.items())
        return [(target, file) for target, file in pairs if _differs(target, file)]

    def _look_to_write(self, path: str) -> FileTarget:
        for part in _list_prefixes(path) if self._removed_links else ():
            name = self._view.find_exact_name(part)
            if name in self._removed_links and part != path:
                raise _build_link_error(path, part)
            if name in self._removed_links:
                return self._targets[name]
        if path not in self._written:
            self._written[path] = self._add(self._view.look_to_write(path))
        return self._written[path]

    def _look_to_remove(self, path: str) -> FileTarget:
        """The target of a name that is on the disk, or only in the patch so far."""
        try:
            return self._add(self._view.look_to_remove(path))
        except ToolError as error:
            if error.code != "NOT_FOUND" or path not in self._written:
                raise
            return self._written[path]

    def _refuse_missing(self, path: str, target: FileTarget) -> NoReturn:
        if target.exists:
            raise ToolError("NOT_FOUND", f"{clip_path(path)} is removed earlier in the same patch.")
        raise self._view.context.workspace.build_not_found_error(path, "file")

    def _add(self, target: FileTarget) -> FileTarget:
        known = self._targets.get(target.exact)
        if known is not None:
            return known
        self._targets[target.exact] = target
        self._files[target.exact] = _read_original(target)
        self._count_bytes(target.data)
        return target

    def _set(self, target: FileTarget, file: _PatchedFile) -> None:
        self._files[target.exact] = file
        self._count_bytes(file.data)

    def _count_bytes(self, data: bytes | None) -> None:
        self._bytes += len(data or b"")
        if self._bytes > MAX_TOTAL_BYTES:
            size = MAX_TOTAL_BYTES >> 20
            message = f"The files of the patch have more than {size} MiB together. Send several smaller patches."
            raise ToolError("LIMIT_EXCEEDED", message)


def _list_prefixes(path: str) -> list[str]:
    """The path, and the folders on the way to it."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1) if parts[end - 1]]


def _build_link_error(path: str, link: str) -> ToolError:
    message = f"{clip_path(link)} is a link that the patch removes, and {clip_path(path)} leads through it."
    return ToolError("CONFLICT", f"{message} Name the file that it leads to, or send two patches.")


def _refuse_deep(path: str, target: FileTarget) -> None:
    if len(target.missing) > MAX_NEW_FOLDERS:
        count = len(target.missing)
        message = f"{clip_path(path)} needs {count} new folders, one in the other; {MAX_NEW_FOLDERS} are the maximum."
        raise ToolError("LIMIT_EXCEEDED", message)


def _read_original(target: FileTarget) -> _PatchedFile | None:
    return _PatchedFile(target, target.data, target.mode) if target.exists else None


def _differs(target: FileTarget, file: _PatchedFile | None) -> bool:
    if file is None or not target.exists:
        return (file is None) == target.exists
    return (file.data, file.mode) != (target.data, target.mode)


def _check_deleted_content(file: _PatchedFile, patch: FilePatch) -> None:
    """NO_MATCH if a deleted file holds other lines than the patch shows, or a link leads elsewhere."""
    path = clip_path(patch.path)
    if file.is_link:
        _refuse_other_link(file, patch, path)
    elif file.data is None:
        message = f"{path} is larger than 32 MiB, too large to compare it with the patch. Use *** Delete File: instead."
        raise ToolError("LIMIT_EXCEEDED", message)
    else:
        _refuse_other_text(decode_text_file(file.data, path), patch, path)


def _adapt_hunks(text: TextFile, patch: FilePatch) -> Sequence[Hunk]:
    """The hunks without a byte order mark, if the text lost its own."""
    return tuple(map(strip_byte_order_mark, patch.hunks)) if find_byte_order_mark(text.file.encoding) else patch.hunks


def _refuse_other_text(text: TextFile, patch: FilePatch, path: str) -> None:
    hunks, lines = _adapt_hunks(text, patch), TextLines(text.text)
    if lines.lines != [line for hunk in hunks for line in hunk.old]:
        raise ToolError("NO_MATCH", f"{path} holds other lines than the patch removes. {_ADVICE}")
    if lines.ended == hunks[-1].old_open:
        ends = "ends with a newline" if lines.ended else "does not end with a newline"
        raise ToolError("NO_MATCH", f"{path} {ends}, unlike in the patch. {_ADVICE}")


def _refuse_other_link(file: _PatchedFile, patch: FilePatch, path: str) -> None:
    shown = "\n".join(line for hunk in patch.hunks for line in hunk.old)
    link = file.source.link
    if link is None or Content.from_bytes(os.fsencode(shown)).hash != link.hash:
        raise ToolError("NO_MATCH", f"{path} is a link with another target than in the patch. Check it with ls.")


def add_patch_position(error: ToolError, file: FilePatch) -> ToolError:
    """The error with the line of the patch, and with the fact that nothing was changed."""
    details = error.named_details
    if "hunk" in details:
        return error
    message = error.message.removesuffix(_UNCHANGED).removesuffix(" Nothing was written.")
    message = message if message.endswith(".") else f"{message}."
    located = f"Line {file.line} of the patch ({file.action} {clip_path(file.path)}): {message}{_UNCHANGED}"
    return ToolError(error.code, located, details={**details, "path": file.path, "patchLine": file.line})


def add_position_by_path(error: ToolError, files: Iterable[FilePatch], path: str) -> ToolError:
    """The same for the first file of the patch with this path."""
    return next((add_patch_position(error, file) for file in files if path in {file.path, file.target}), error)


def check_nested_paths(files: Sequence[FilePatch]) -> None:
    """INVALID_ARGUMENT if a path of the patch is the folder of another."""
    named = {_normalize(path): file for file in reversed(files) for path in (file.path, file.target) if path}
    # In this order a folder comes right before its files.
    for outer, inner in pairwise(sorted(named)):
        if outer == inner[: len(outer)]:
            raise _build_nested_error(named[outer], named[inner], "/".join(outer), "/".join(inner))


def _build_nested_error(one: FilePatch, other: FilePatch, outer: str, inner: str) -> ToolError:
    first, last = sorted((one, other), key=lambda file: file.line)
    message = (
        f"{clip_path(inner)} is in {clip_path(outer)}, which is a file in the patch (see line {first.line} too). "
        "Send two patches: first the removal, then the addition."
    )
    return add_patch_position(ToolError("INVALID_ARGUMENT", message), last)


def _normalize(path: str) -> tuple[str, ...]:
    parts: list[str] = ["/"] if path.startswith("/") else []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return tuple(parts)
