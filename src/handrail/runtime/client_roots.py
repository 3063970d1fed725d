"""The folders that a client says it works on: roots as far as the person's settings let them be."""

import os
from collections.abc import Sequence

from handrail.runtime.outside import build_boundary
from handrail.settings import resolve_user_file
from handrail.settings.model import ClientRoots
from handrail.settings.paths import MANAGED_FILE
from handrail.workspace.roots import Boundary, Root, open_root
from handrail.workspace.workspace import Workspace

MAX_CLIENT_ROOTS = 32
"""Folders of one client; each is a descriptor."""
_HOW = 'paths.client_roots = "read-only" (or "writable") in the user file'


def set_client_roots(
    workspace: Workspace, folders: Sequence[str], setting: ClientRoots, state: str, *, restricted: bool
) -> tuple[str, ...]:
    """Makes these the client's roots, in the place of those before; what is not honoured, in words for a person.

    A folder inside the roots changes nothing. One outside is a client's wish, and a client is told what to say by
    whoever wrote its configuration: only the person's own settings open it, and never what nothing opens.
    """
    outside = [real for real in dict.fromkeys(map(os.path.realpath, folders)) if not _is_inside(workspace, real)]
    told: list[str] = []
    kept: list[Root] = []
    boundary = build_boundary(state, resolve_user_file(os.environ), MANAGED_FILE)
    for real in outside[:MAX_CLIENT_ROOTS]:
        if why := _refused(real, setting, boundary, restricted=restricted):
            told.append(f"The client's root {real} is not used: {why}.")
        elif (root := _root(workspace, real, writable=setting == "writable")) is None:
            told.append(f"The client's root {real} is not used: it is no folder that can be opened.")
        else:
            kept.append(root)
    if len(outside) > MAX_CLIENT_ROOTS:
        told.append(
            f"{len(outside) - MAX_CLIENT_ROOTS} more roots of the client are not used: there may be {MAX_CLIENT_ROOTS}."
        )
    if kept or workspace.root_sets.sources["client"]:
        workspace.root_sets.replace("client", kept)
    return tuple(told)


def _is_inside(workspace: Workspace, real: str) -> bool:
    """Whether a folder is in the workspace, or in a root that the settings name."""
    joined = workspace.root_sets.sources["client"]
    given = [root.path for root in workspace.roots if root not in joined]
    return any(real == path or real.startswith(path.rstrip("/") + "/") for path in given)


def _refused(real: str, setting: ClientRoots, boundary: Boundary, *, restricted: bool) -> str:
    if restricted:
        return "the restricted profile works in the workspace alone"
    if shut := boundary.find_closed_reason(real):
        return shut
    return f"it is outside the workspace; {_HOW} lets it be one" if setting == "ignore" else ""


def _root(workspace: Workspace, real: str, *, writable: bool) -> Root | None:
    """The root of a folder, the one that there is where there is one."""
    for root in workspace.root_sets.sources["client"]:
        if (root.path, root.writable) == (real, writable):
            return root
    root = open_root(real, writable=writable)
    if root is not None:
        root.opened_by_person = False  # the settings opened it, and no question goes further
    return root
