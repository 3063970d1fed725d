"""Where a layer has a path."""

import os

from handrail.sandbox.layer.layer import Layer, Overlaid
from handrail.workspace.workspace import Workspace


def spelled(workspace: Workspace, root: str) -> str:
    """How paths in a root begin in steps: relative in the workspace, absolute elsewhere."""
    main = workspace.main.path
    if root == main:
        return ""
    return f"{root[len(_within(main)) :]}/" if holds(main, root) else _within(root)


def holds(outer: str, inner: str) -> bool:
    """Whether a folder lies in another one."""
    return inner != outer and inner.startswith(_within(outer))


def below_upper(workspace: Workspace, path: bytes, layer: Layer) -> tuple[Overlaid, str]:
    """What lies over the root that the path of a step is in, and the path below that root."""
    full = os.path.join(workspace.main.path, os.fsdecode(path))
    over = max((one for one in layer.overlaid if full.startswith(_within(one.root))), key=lambda one: len(one.root))
    return over, full[len(_within(over.root)) :]


def _within(folder: str) -> str:
    return f"{folder.rstrip('/')}/"
