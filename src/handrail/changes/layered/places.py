"""Where an overlay has a path."""

import os

from handrail.sandbox.layer.layer import Overlay, OverlayMount
from handrail.workspace.workspace import Workspace


def build_path_prefix(workspace: Workspace, root: str) -> str:
    """How paths in a root begin in steps: relative in the workspace, absolute elsewhere."""
    main = workspace.main.path
    if root == main:
        return ""
    return f"{root[len(_within(main)) :]}/" if is_ancestor(main, root) else _within(root)


def is_ancestor(outer: str, inner: str) -> bool:
    """Whether a folder lies in another one."""
    return inner != outer and inner.startswith(_within(outer))


def resolve_overlay_path(workspace: Workspace, path: bytes, overlay: Overlay) -> tuple[OverlayMount, str]:
    """What lies over the root that the path of a step is in, and the path below that root."""
    full = os.path.join(workspace.main.path, os.fsdecode(path))
    over = max((one for one in overlay.overlaid if full.startswith(_within(one.root))), key=lambda one: len(one.root))
    return over, full[len(_within(over.root)) :]


def _within(folder: str) -> str:
    return f"{folder.rstrip('/')}/"
