"""Saved previews: commands that ran in an overlay, waiting for an approval."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.model import PLAIN_OVERLAY_PLACEMENT, CommandPreview, OverlayChanges, Placement
from handrail.changes.overlay.walk import (
    escape_xattr_name,
    open_overlay_file,
    open_overlay_parent,
    resolve_overlay_path,
)
from handrail.changes.stored_previews import StoredPreview
from handrail.process.result import CapturedOutput
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.wire import decode_msgpack
from handrail.sandbox.overlay.overlay import OPAQUE, Overlay
from handrail.store.blobs import Blobs
from handrail.store.change_log import Step
from handrail.store.state_dir import make_id
from handrail.workspace.resolve import closing_descriptor
from handrail.workspace.workspace import Workspace

_OUTPUT, _ERRORS = "output", "errors"
_MAX_SINGLE_READ_BYTES = 1 << 18
"""Size up to which a content is read at once."""


def save_preview(workspace: Workspace, history: History, preview: CommandPreview, overlay: Overlay | None) -> str:
    """Stores a preview with its new contents and its output. Returns its name.

    `overlay`: holds the contents. None if they are stored already.
    """
    name = make_id("try")
    outputs = {_OUTPUT: preview.ran.output, _ERRORS: preview.ran.errors}
    files = {inner: one.spilled for inner, one in outputs.items() if one is not None and one.spilled is not None}
    ran = replace(preview.ran, output=_remove_path(preview.ran.output), errors=_remove_path(preview.ran.errors))
    size = sum(one.spilled_bytes for one in outputs.values() if one is not None)
    size += count_preview_bytes(preview.examined) if overlay is not None else 0
    afters = (step.after for step in preview.examined.steps)
    hashes = tuple(dict.fromkeys(after.hash for after in afters if after is not None and after.hash))
    document = msgspec.Raw(msgspec.msgpack.encode(replace(preview, ran=ran)))
    save_contents = partial(_save_contents, workspace, preview.examined.steps, overlay)
    history.previews.put(name, StoredPreview(document, hashes, size), files, save_contents)
    history.blobs.borrow(history.previews.blobs(name), hashes)
    return name


def count_preview_bytes(examined: OverlayChanges) -> int:
    return sum(step.after.size for step in _list_distinct(examined.steps) if step.after is not None)


def load_preview(history: History, name: str) -> CommandPreview:
    """A stored preview. CONFLICT if it is gone or cannot be read."""
    try:
        stored = history.previews.get(name)
        if stored is None:
            raise _build_lost_error("The preview is no longer stored.")
        preview = decode_msgpack(stored.document, CommandPreview)
    except StoreError as error:
        reason = str(error)
        raise _build_lost_error(f"{reason[:1].upper()}{reason[1:]}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _build_lost_error("The preview cannot be read: it is damaged.") from None
    lender = history.previews.blobs(name)
    missing = [digest for digest in stored.contents if not (lender.has(digest) or history.blobs.has(digest))]
    if missing:
        raise _build_lost_error(f"The preview is incomplete: {missing[0][:12]} is missing.")
    history.blobs.borrow(lender, stored.contents)
    output, errors = (
        _add_path(one, history.previews.file(name, inner))
        for inner, one in ((_OUTPUT, preview.ran.output), (_ERRORS, preview.ran.errors))
    )
    return replace(preview, ran=replace(preview.ran, output=output, errors=errors))


def delete_preview(history: History, name: str) -> None:
    """Deletes a preview with its contents. It may be gone already."""
    history.blobs.give_back(history.previews.blobs(name))
    history.previews.drop(name)


def _build_lost_error(reason: str) -> ToolError:
    return ToolError("CONFLICT", f"{reason} Nothing was kept. Call again.")


def _remove_path(output: CapturedOutput | None) -> CapturedOutput | None:
    """Marks that there is a file, which has another path in the store."""
    return replace(output, spilled="" if output.spilled is not None else None) if output is not None else None


def _add_path(output: CapturedOutput | None, path: str | None) -> CapturedOutput | None:
    if output is None or output.spilled is None:
        return output
    if path is not None:
        return replace(output, spilled=path)
    # The file was taken already, so only the parts in memory are left.
    lost = output.total - len(output.head) - len(output.tail)
    return replace(output, spilled=None, spilled_bytes=0, lost=lost)


# New contents


def save_new_content(workspace: Workspace, blobs: Blobs, step: Step, overlay: Overlay) -> None:
    if step.after is not None and step.after.size > _MAX_SINGLE_READ_BYTES and step.after.kind == "file":
        with closing_descriptor(_open_new_file(workspace, step, overlay)) as descriptor:
            blobs.keep_file(step.after.hash, descriptor)
        return
    for digest, data in _read_small_contents(workspace, (step,), overlay):
        blobs.keep(digest, data, pack=True)


def _save_contents(workspace: Workspace, steps: Iterable[Step], overlay: Overlay | None, blobs: Blobs) -> None:
    """Stores all new contents: the small ones together, the large ones by themselves."""
    if overlay is None:
        return
    steps = _list_distinct(steps)
    blobs.keep_all(_read_small_contents(workspace, steps, overlay))
    for step in steps:
        if step.after is not None and step.after.size > _MAX_SINGLE_READ_BYTES:
            save_new_content(workspace, blobs, step, overlay)


def _list_distinct(steps: Iterable[Step]) -> list[Step]:
    """The first step to each content. Of the names of one file, the overlay may have only the first."""
    first: dict[str, Step] = {}
    for step in steps:
        if step.after is not None:
            first.setdefault(step.after.hash, step)
    return list(first.values())


def _read_small_contents(workspace: Workspace, steps: Iterable[Step], overlay: Overlay) -> Iterator[tuple[str, bytes]]:
    for step in steps:
        after = step.after
        if after is None or after.kind == "folder" or after.size > _MAX_SINGLE_READ_BYTES:
            continue
        data = _read_content(workspace, step, after, overlay)
        if hashlib.sha256(data).hexdigest() != after.hash:
            raise StoreError(f"{os.fsdecode(step.path)} changed since it was read")
        yield after.hash, data


def _read_content(workspace: Workspace, step: Step, after: State, overlay: Overlay) -> bytes:
    if after.kind != "link":
        with open(_open_new_file(workspace, step, overlay), "rb") as file:
            return file.read(_MAX_SINGLE_READ_BYTES + 1)
    mount, relative = resolve_overlay_path(workspace, step.path, overlay)
    with open_overlay_parent(mount.upper, relative) as (folder, name):
        return os.fsencode(os.readlink(name, dir_fd=folder))


def _open_new_file(workspace: Workspace, step: Step, overlay: Overlay) -> int:
    mount, relative = resolve_overlay_path(workspace, step.path, overlay)
    with open_overlay_parent(mount.upper, relative) as (folder, name):
        return open_overlay_file(name, folder)


# Rebuilding an overlay


class _StackedChange(NamedTuple):
    before: State | None
    """The state before the first preview."""
    after: State | None
    """The state after the last preview."""
    placement: Placement
    data: bytes | None
    """The new content, if it is not stored."""


def restack(workspace: Workspace, history: History, previews: Iterable[OverlayChanges], overlay: Overlay) -> None:
    """Fills a new overlay with the changes of previews, as if their commands had run in it.

    OSError or StoreError if that fails. The overlay is unusable then.
    """
    covered = b"\0"
    for path, change in sorted(_stack_changes(previews).items()):
        if path.startswith(covered):
            continue  # its folder is removed or replaced
        mount, relative = resolve_overlay_path(workspace, path, overlay)
        _make_parents(mount.upper, mount.root, relative)
        _write_entry(history, os.path.join(mount.upper, relative), change)
        if change.after is None or change.after.kind != "folder":
            covered = path + b"/"


def set_expected_changes(preview: CommandPreview, below: Iterable[OverlayChanges]) -> CommandPreview:
    """The preview with the paths that earlier previews change."""
    changed = {step.path for examined in below for step in examined.steps}
    folders = {path[:end] for path in changed for end in range(len(path)) if path[end : end + 1] == b"/"}
    return replace(preview, examined=replace(preview.examined, expected=tuple(sorted(changed | folders))))


def _stack_changes(previews: Iterable[OverlayChanges]) -> dict[bytes, _StackedChange]:
    stacked: dict[bytes, _StackedChange] = {}
    for examined in previews:
        placements = examined.manners or (PLAIN_OVERLAY_PLACEMENT,) * len(examined.steps)
        for step, placement in zip(examined.steps, placements, strict=True):
            before = stacked[step.path].before if step.path in stacked else step.before
            data = examined.contents.get(step.after.hash) if step.after is not None else None
            stacked[step.path] = _StackedChange(before, step.after, placement, data)
    return stacked


def _write_entry(history: History, path: str, change: _StackedChange) -> None:
    before, after = change.before, change.after
    if after is None:
        if before is not None:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(0, 0))  # a whiteout of overlayfs
    elif after.kind == "folder":
        os.mkdir(path)
        if before is None or before.kind != "folder":
            os.setxattr(path, OPAQUE, b"y")
        os.chmod(path, 0o755 if after.mode is None else after.mode)
    elif after.kind == "link":
        os.symlink(b"".join(history.blobs.chunks(after.hash)), os.fsencode(path))
    else:
        content = (change.data,) if change.data is not None else history.blobs.chunks(after.hash)
        with open(path, "xb") as file:
            file.writelines(content)
        for name, value in (change.placement.attributes or {}).items():
            os.setxattr(path, escape_xattr_name(name), value)
        os.chmod(path, 0o644 if after.mode is None else after.mode)
        if change.placement.mtime_ns is not None:
            os.utime(path, ns=(change.placement.mtime_ns, change.placement.mtime_ns))


def _make_parents(upper: str, root: str, relative: str) -> None:
    """Makes the folders above a path, as they are below the overlay."""
    *folders, _ = relative.split("/")
    for number in range(len(folders)):
        inner = "/".join(folders[: number + 1])
        path = os.path.join(upper, inner)
        if not os.path.isdir(path):
            lower = os.stat(os.path.join(root, inner), follow_symlinks=False)
            os.mkdir(path)
            if os.geteuid() == 0:
                os.chown(path, lower.st_uid, lower.st_gid)
            os.chmod(path, stat.S_IMODE(lower.st_mode))
