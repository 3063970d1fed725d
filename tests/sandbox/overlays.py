"""A small world for commands in a layer: what they change, what lies below, and nothing else."""

import os
import stat
from pathlib import Path

from tests.sandbox.namespaces import PROGRAM, Ended, World, ended

from handrail.sandbox.overlay.overlay import Overlay
from handrail.sandbox.sandbox import CommandSandbox

WHY_NOT = "bubblewrap is not installed" if PROGRAM is None else None


class LayeredWorld(World):
    """Commands run in a layer over the workspace."""

    def __init__(self, folder: Path, *, state: str = "state") -> None:
        super().__init__(folder)
        self.sandbox = CommandSandbox(self.host(state=str(self.folder / state)))
        self.roots: tuple[str, ...] = (str(self.workspace),)

    def new_layer(self, *below: Overlay) -> Overlay:
        assert self.sandbox.find_overlay_obstacle(self.roots) is None
        return self.sandbox.create_overlay(self.roots, below)

    def in_layer(self, text: str, layer: Overlay, **changes: object) -> Ended:
        confinement = self.confinement(**{"writable": self.roots, **changes})
        return ended(self.sandbox.launch(confinement, text, layer))

    def upper(self, layer: Overlay, number: int = 0) -> Path:
        return Path(layer.overlaid[number].upper)


def fingerprint(folder: Path) -> dict[str, object]:
    """Everything about a tree that a change could leave its mark on; not when it was last read."""
    found: dict[str, object] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        target = os.readlink(path) if path.is_symlink() else ""
        names = () if path.is_symlink() else tuple(os.listxattr(path))
        numbers = (status.st_ino, status.st_mode, status.st_nlink, status.st_uid, status.st_gid)
        found[str(path.relative_to(folder))] = (
            *numbers, status.st_mtime_ns, status.st_ctime_ns, content, target, names
        )  # fmt: skip
    return found
