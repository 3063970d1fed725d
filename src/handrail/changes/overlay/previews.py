"""Previews kept until their approval."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec
from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.model import CommandPreview, OverlayChanges
from handrail.changes.overlay.walk import open_overlay_file, open_overlay_parent, resolve_overlay_path
from handrail.changes.stored_previews import StoredPreview
from handrail.process.result import CapturedOutput
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.wire import decode_msgpack
from handrail.sandbox.overlay.overlay import Overlay
from handrail.store.blobs import Blobs
from handrail.store.change_log import Step
from handrail.store.state_dir import make_id
from handrail.workspace.workspace import Workspace

_NOTHING_KEPT = "Nothing was kept. Call again."
_OUTPUT, _ERRORS = "output", "errors"
_MAX_SINGLE_READ_BYTES = 1 << 18
"""Bytes up to which a content is read in one piece."""


def save_preview(workspace: Workspace, history: History, preview: CommandPreview, overlay: Overlay | None) -> str:
    """Stores the preview, with what every file would become and all that was printed; returns its name. `overlay`:
    where the contents are; None if they are stored already."""
    name = make_id("try")
    printed = {_OUTPUT: preview.ran.output, _ERRORS: preview.ran.errors}
    files = {inner: one.spilled for inner, one in printed.items() if one is not None and one.spilled is not None}
    plain = replace(
        preview, ran=replace(preview.ran, output=_without(printed[_OUTPUT]), errors=_without(printed[_ERRORS]))
    )
    size = sum(one.spilled_bytes for one in printed.values() if one is not None)
    size += count_preview_bytes(preview.examined) if overlay is not None else 0
    sealed = StoredPreview(msgspec.Raw(msgspec.msgpack.encode(plain)), _contents(preview), size)
    history.previews.put(name, sealed, files, partial(_store_all_after, workspace, preview.examined.steps, overlay))
    history.blobs.borrow(history.previews.blobs(name), sealed.contents)
    return name


def count_preview_bytes(examined: OverlayChanges) -> int:
    """Bytes of the contents that a preview needs."""
    return sum(step.after.size for step in _one_of_each(examined.steps) if step.after is not None)


def load_preview(history: History, name: str) -> CommandPreview:
    """The preview; what was printed is a file again, where it was one. CONFLICT where it is gone, or cannot be read."""
    try:
        sealed = history.previews.get(name)
        if sealed is None:
            raise ToolError("CONFLICT", f"What was tried is not kept any more. {_NOTHING_KEPT}")
        preview = decode_msgpack(sealed.document, CommandPreview)
    except StoreError as error:
        raise ToolError("CONFLICT", f"{_sentence(str(error))} {_NOTHING_KEPT}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ToolError("CONFLICT", f"What was tried cannot be read: it is damaged. {_NOTHING_KEPT}") from None
    lender = history.previews.blobs(name)
    missing = [digest for digest in sealed.contents if not (lender.has(digest) or history.blobs.has(digest))]
    if missing:
        raise ToolError("CONFLICT", f"What was tried is not whole: {missing[0][:12]} is missing. {_NOTHING_KEPT}")
    history.blobs.borrow(lender, sealed.contents)
    output, errors = (
        _with_file(printed, history.previews.file(name, inner))
        for inner, printed in ((_OUTPUT, preview.ran.output), (_ERRORS, preview.ran.errors))
    )
    return replace(preview, ran=replace(preview.ran, output=output, errors=errors))


def delete_preview(history: History, name: str) -> None:
    """Deletes a preview with its contents: nobody needs it any more. Can be repeated."""
    history.blobs.give_back(history.previews.blobs(name))
    history.previews.drop(name)


def _store_all_after(workspace: Workspace, steps: Iterable[Step], overlay: Overlay | None, blobs: Blobs) -> None:
    """Stores what every file would become: what is small together, what is large piece by piece."""
    if overlay is None:
        return
    steps = _one_of_each(steps)
    blobs.keep_all(_small_contents(workspace, steps, overlay))
    for step in steps:
        if step.after is not None and step.after.size > _MAX_SINGLE_READ_BYTES:
            save_new_content(workspace, blobs, step, overlay)


def _one_of_each(steps: Iterable[Step]) -> list[Step]:
    """The first step to each content: of the names of one file, the overlay may have only the first."""
    first: dict[str, Step] = {}
    for step in steps:
        if step.after is not None:
            first.setdefault(step.after.hash, step)
    return list(first.values())


def save_new_content(workspace: Workspace, blobs: Blobs, step: Step, overlay: Overlay) -> None:
    """Stores what a file would become."""
    if step.after is not None and step.after.size > _MAX_SINGLE_READ_BYTES and step.after.kind == "file":
        descriptor = _open_after(workspace, step, overlay)
        try:
            blobs.keep_file(step.after.hash, descriptor)
        finally:
            os.close(descriptor)
        return
    for digest, data in _small_contents(workspace, (step,), overlay):
        blobs.keep(digest, data, pack=True)


def _small_contents(workspace: Workspace, steps: Iterable[Step], overlay: Overlay) -> Iterator[tuple[str, bytes]]:
    for step in steps:
        after = step.after
        if after is None or after.kind == "folder" or after.size > _MAX_SINGLE_READ_BYTES:
            continue
        data = _read_link(workspace, step, overlay) if after.kind == "link" else _read_file(workspace, step, overlay)
        if hashlib.sha256(data).hexdigest() != after.hash:
            raise StoreError(f"{os.fsdecode(step.path)} is not what it was when it was looked at")
        yield after.hash, data


def _read_link(workspace: Workspace, step: Step, overlay: Overlay) -> bytes:
    over, relative = resolve_overlay_path(workspace, step.path, overlay)
    with open_overlay_parent(over.upper, relative) as (folder, name):
        return os.fsencode(os.readlink(name, dir_fd=folder))


def _read_file(workspace: Workspace, step: Step, overlay: Overlay) -> bytes:
    with open(_open_after(workspace, step, overlay), "rb") as file:
        return file.read(_MAX_SINGLE_READ_BYTES + 1)


def _open_after(workspace: Workspace, step: Step, overlay: Overlay) -> int:
    over, relative = resolve_overlay_path(workspace, step.path, overlay)
    with open_overlay_parent(over.upper, relative) as (folder, name):
        return open_overlay_file(name, folder)


def _contents(preview: CommandPreview) -> tuple[str, ...]:
    afters = (step.after for step in preview.examined.steps)
    return tuple(dict.fromkeys(after.hash for after in afters if after is not None and after.hash))


def _without(printed: CapturedOutput | None) -> CapturedOutput | None:
    """As it is stored: the file has a name of its own there."""
    return replace(printed, spilled="" if printed.spilled is not None else None) if printed is not None else None


def _with_file(printed: CapturedOutput | None, path: str | None) -> CapturedOutput | None:
    if printed is None or printed.spilled is None:
        return printed
    if path is not None:
        return replace(printed, spilled=path)
    # Somebody took the file already: what memory held is left.
    lost = printed.total - len(printed.head) - len(printed.tail)
    return replace(printed, spilled=None, spilled_bytes=0, lost=lost)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
