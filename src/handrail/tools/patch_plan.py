"""Works a patch out: every file looked at, every hunk put in its place, before anything is written."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from handrail.edit.diff import Diff, diff_of, unified_diff
from handrail.edit.patch.fitting import fitted
from handrail.edit.patch.model import FilePatch, Hunk, unmarked
from handrail.edit.patch.text_lines import TextLines
from handrail.protocol.error import ToolError
from handrail.tools.deleting import NO_DIFF, removal
from handrail.tools.patch_tree import Held, PatchTree
from handrail.tools.saving import refuse_linked
from handrail.tools.slots import Looker, Slot, too_large
from handrail.tools.text_file import TextFile, text_file
from handrail.tools.together import Becomes
from handrail.workspace.errors import clipped
from handrail.workspace.exact import Found
from handrail.workspace.modes import executable_mode
from handrail.workspace.text import decoded, mark_of

_NOWHERE = Slot("", "", b"", Found(None))
"""Where a new file comes from."""


class Planned(msgspec.Struct, frozen=True):
    """What a path is to be, and how its hunks were found."""

    becomes: Becomes
    strategies: tuple[str, ...] = ()
    moves_away: bool = False
    """Whether it goes because it is somewhere else now."""


def worked_out(looker: Looker, files: Sequence[FilePatch]) -> list[Planned]:
    """What becomes of every path; ToolError with the file and the line of the patch that cannot be done."""
    tree = PatchTree(looker, Counter(file.path for file in files if file.action in {"delete", "move"}))
    for file in files:
        looker.context.check_cancelled()
        try:
            _STEPS[file.action](tree, file)
        except ToolError as error:
            raise _placed(error, file) from None
    outcome = tree.outcome()
    if not outcome:
        raise ToolError("NO_CHANGE", "After the patch every file is what it was. Nothing was changed.")
    moved = {held.slot.exact for _, held in outcome if held is not None and held.moved}
    return [_planned(slot, held, moves_away=slot.exact in moved) for slot, held in outcome]


def _add(tree: PatchTree, file: FilePatch) -> None:
    mode = executable_mode(None) if file.executable else None
    data = (file.content or "").encode()
    tree.put(file.path, Held(_NOWHERE, data, mode))


def _update(tree: PatchTree, file: FilePatch) -> None:
    tree.change(file.path, _patched(tree.there(file.path), file))


def _delete(tree: PatchTree, file: FilePatch) -> None:
    held = tree.take(file.path)
    if file.hunks and held.data is not None:
        text = text_file(held.data, clipped(file.path))
        if TextLines(text.text).lines != [line for hunk in _hunks_for(text, file) for line in hunk.old]:
            message = (
                f"{clipped(file.path)} holds other lines than the patch removes. Read it, then make the patch anew."
            )
            raise ToolError("NO_MATCH", message)


def _move(tree: PatchTree, file: FilePatch) -> None:
    if file.target == file.path:
        _update(tree, file)
        return
    held = tree.take(file.path)
    _refuse_link(held, file)
    if held.data is None:
        raise too_large(file.path)
    tree.put(file.target or "", msgspec.structs.replace(_elsewhere(_patched(held, file)), moved=True))


def _copy(tree: PatchTree, file: FilePatch) -> None:
    copied = _elsewhere(_patched(tree.original(file.path), file))
    tree.put(file.target or "", msgspec.structs.replace(copied, diff=None, slot=_NOWHERE))


def _elsewhere(held: Held) -> Held:
    """A file under a new name: with its mode, but without rights of an owner that it may not have there."""
    return msgspec.structs.replace(held, mode=held.mode & 0o777 if held.mode is not None else None)


_STEPS = {"add": _add, "update": _update, "delete": _delete, "move": _move, "copy": _copy}


def _refuse_link(held: Held, file: FilePatch) -> None:
    state = held.slot.found.state
    if state is not None and state.kind == "link" and held.data is None:
        message = f"{clipped(file.path)} is a link. Name the file that it leads to, or delete it and add another."
        raise ToolError("NOT_A_FILE", message)


def _patched(held: Held, file: FilePatch) -> Held:
    """A file with its hunks in it."""
    path = clipped(file.path)
    mode = held.mode if file.executable is None else executable_mode(held.mode, on=file.executable)
    if not file.hunks:
        return msgspec.structs.replace(held, mode=mode)
    if held.data is None:
        raise too_large(file.path)
    text = text_file(held.data, path)
    found = fitted(text.text, _hunks_for(text, file), path, text.readable)
    made = text.rewritten(found.replacements, _given(file.hunks), path)
    refuse_linked(held.slot.found.current if not file.target else None, made.data, file.path)
    is_first = held.slot.found.current is not None and held.data is held.slot.found.current.data
    shown = held.slot.real if file.target is None else file.target
    diff = diff_of(text.readable, found.replacements, shown) if is_first else None
    return Held(held.slot, made.data, mode, diff, (*held.strategies, *found.strategies), held.moved)


def _hunks_for(text: TextFile, file: FilePatch) -> Sequence[Hunk]:
    return tuple(map(unmarked, file.hunks)) if mark_of(text.file.encoding) else file.hunks


def _given(hunks: Sequence[Hunk]) -> str:
    """The new lines, with the endings that the patch has for them."""
    new = "".join(f"{line.text}\n" for hunk in hunks for line in hunk.lines if line.sign == "+")
    is_last = hunks[-1].new_open and hunks[-1].lines[-1].sign == "+"  # else the open line is one that stays
    return new.removesuffix("\n") if is_last else new


def _planned(slot: Slot, held: Held | None, *, moves_away: bool) -> Planned:
    if held is None or held.data is None:
        gone = Becomes(slot, None, None, NO_DIFF) if moves_away else removal(slot)
        return Planned(gone, moves_away=moves_away)
    renamed = held.slot.real if held.moved and held.slot is not slot else None
    diff = held.diff if held.diff is not None else _diff(slot if renamed is None else held.slot, held.data, slot.real)
    if renamed is not None:
        diff = _with(diff, f"rename from {renamed}\nrename to {slot.real}\n")
    elif not diff.text and slot.found.state is not None:
        diff = _with(diff, f"(the mode of {slot.real} becomes {held.mode or 0:04o})\n")
    binary = decoded(held.data) is None
    return Planned(Becomes(slot, held.data, held.mode, diff, renamed, binary), held.strategies)


def _diff(before: Slot, data: bytes, real: str) -> Diff:
    """The difference between what is on the disk and what is to be there."""
    current = before.found.current
    new = decoded(data)
    old = decoded(current.data) if current is not None and current.data is not None else None
    if new is None or (current is not None and old is None):
        return NO_DIFF
    return unified_diff(old.text if old is not None else None, new.text, real)


def _with(diff: Diff, heading: str) -> Diff:
    return msgspec.structs.replace(diff, text=f"{heading}{diff.text}")


def _placed(error: ToolError, file: FilePatch) -> ToolError:
    """A refusal that says where in the patch it is about, and that nothing was done."""
    known = error.named_details
    if "hunk" in known:
        return error
    message = error.message.removesuffix(" Nothing was changed.").removesuffix(" Nothing was written.")
    whole = f"Line {file.line} of the patch ({file.action} {clipped(file.path)}): {message} Nothing was changed."
    return ToolError(error.code, whole, details={**known, "path": file.path, "patchLine": file.line})
