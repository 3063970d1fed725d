"""Lays what previews would change into an overlay, as if their commands had run in it: for a command that comes next.

The overlays that they ran in are gone by then. What is laid is what is stored, so it is exactly what a yes commits."""

import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.model import PLAIN_OVERLAY_PLACEMENT, CommandPreview, OverlayChanges, OverlayPlacement
from handrail.changes.overlay.walk import escape_xattr_name, resolve_overlay_path
from handrail.protocol.changes import State
from handrail.sandbox.overlay.overlay import Overlay
from handrail.workspace.workspace import Workspace

_OPAQUE = "user.overlay.opaque"


class _Laid(NamedTuple):
    before: State | None
    """What is there before the first of them."""
    after: State | None
    """What there is after the last of them."""
    manner: OverlayPlacement
    data: bytes | None
    """The new content, where it is stored nowhere."""


def restack(workspace: Workspace, history: History, previews: Iterable[OverlayChanges], overlay: Overlay) -> None:
    """Fills a new overlay with what the previews would change, one after the other. OSError or StoreError if that
    fails: the overlay is of no use then."""
    covered = b"\0"
    for path, laid in sorted(_put_together(previews).items()):
        if path.startswith(covered):
            continue  # what it was in is gone, or is no folder any more
        _lay_one(workspace, history, path, laid, overlay)
        if laid.after is None or laid.after.kind != "folder":
            covered = path + b"/"


def set_expected_changes(preview: CommandPreview, below: Iterable[OverlayChanges]) -> CommandPreview:
    """The preview as one that knows what comes before it."""
    changed = {step.path for examined in below for step in examined.steps}
    folders = {path[:end] for path in changed for end in range(len(path)) if path[end : end + 1] == b"/"}
    return replace(preview, examined=replace(preview.examined, expected=tuple(sorted(changed | folders))))


def _put_together(previews: Iterable[OverlayChanges]) -> dict[bytes, _Laid]:
    found: dict[bytes, _Laid] = {}
    for examined in previews:
        placements = examined.manners or (PLAIN_OVERLAY_PLACEMENT,) * len(examined.steps)
        for step, placement in zip(examined.steps, placements, strict=True):
            before = found[step.path].before if step.path in found else step.before
            data = examined.contents.get(step.after.hash) if step.after is not None else None
            found[step.path] = _Laid(before, step.after, placement, data)
    return found


def _lay_one(workspace: Workspace, history: History, path: bytes, laid: _Laid, overlay: Overlay) -> None:
    over, relative = resolve_overlay_path(workspace, path, overlay)
    _make_parents(over.upper, over.root, relative)
    place, after = os.path.join(over.upper, relative), laid.after
    if after is None:
        if laid.before is not None:
            os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(0, 0))  # how overlayfs says that there is nothing
    elif after.kind == "folder":
        os.mkdir(place)
        if laid.before is None or laid.before.kind != "folder":
            os.setxattr(place, _OPAQUE, b"y")
        os.chmod(place, 0o755 if after.mode is None else after.mode)
    elif after.kind == "link":
        os.symlink(b"".join(history.blobs.chunks(after.hash)), os.fsencode(place))
    else:
        _write(place, after, laid.manner, history.blobs.chunks(after.hash) if laid.data is None else (laid.data,))


def _write(place: str, after: State, placement: OverlayPlacement, content: Iterable[bytes]) -> None:
    with open(place, "xb") as file:
        file.writelines(content)
    for name, value in placement.attributes.items():
        os.setxattr(place, escape_xattr_name(name), value)
    os.chmod(place, 0o644 if after.mode is None else after.mode)
    if placement.mtime_ns is not None:
        os.utime(place, ns=(placement.mtime_ns, placement.mtime_ns))


def _make_parents(upper: str, root: str, relative: str) -> None:
    """The folders on the way, as they are beneath."""
    *folders, _ = relative.split("/")
    for number in range(len(folders)):
        inner = "/".join(folders[: number + 1])
        place = os.path.join(upper, inner)
        if not os.path.isdir(place):
            beneath = os.stat(os.path.join(root, inner), follow_symlinks=False)
            os.mkdir(place)
            if os.geteuid() == 0:
                os.chown(place, beneath.st_uid, beneath.st_gid)
            os.chmod(place, stat.S_IMODE(beneath.st_mode))
