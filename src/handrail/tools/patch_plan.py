"""Works a patch out: every file looked at, every hunk put in its place, before anything is written."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from handrail.edit.diff import Diff, build_edit_diff, build_unified_diff
from handrail.edit.patch.apply import apply_hunks
from handrail.edit.patch.hunks import FilePatch, Hunk
from handrail.protocol.errors import ToolError
from handrail.tools.deleting import NO_DIFF, build_removal
from handrail.tools.looking import build_too_large_error
from handrail.tools.patch_deletion import adapt_hunks, check_deleted_content
from handrail.tools.patch_places import add_patch_position
from handrail.tools.patch_tree import PatchFileState, PatchTree
from handrail.tools.saving import check_hard_links
from handrail.tools.slots import TargetPath, TargetResolver
from handrail.tools.text_file import decode_text_file
from handrail.tools.together import FileChange
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import PathState, build_executable_mode
from handrail.workspace.text import decode_text

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
