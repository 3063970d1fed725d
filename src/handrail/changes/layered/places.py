"""Where a layer has a path."""

import os

from handrail.sandbox.layer.layer import Layer, Overlaid
from handrail.workspace.workspace import Workspace


def spelled(workspace: Workspace, root: str) -> str:
    """How paths in a root begin in steps: relative in the workspace, absolute elsewhere."""
    main = workspace.main.path
    if root == main:
        return ""
    start = f"{main.rstrip('/')}/"
    return f"{root[len(start) :]}/" if root.startswith(start) else f"{root}/"


def below_upper(workspace: Workspace, path: bytes, layer: Layer) -> tuple[Overlaid, str]:
    """What lies over the root that the path of a step is in, and the path below that root."""
    full = os.path.join(workspace.main.path, os.fsdecode(path))
    over = max((one for one in layer.overlaid if full.startswith(_within(one))), key=lambda one: len(one.root))
    return over, full[len(_within(over)) :]


def _within(over: Overlaid) -> str:
    return f"{over.root.rstrip('/')}/"
