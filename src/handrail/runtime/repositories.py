"""Which changes of a command steer a git repository that has no name of one, by what is there already."""

import os
import re
from collections.abc import Iterable

from handrail.policy.names import is_git_control_name, list_possible_repositories, normalize_name
from handrail.protocol.changes import Change
from handrail.protocol.errors import ToolError
from handrail.workspace.workspace import Workspace

_HEAD, _REFS = "head", "refs"
"""What makes a repository of a folder in which settings or hooks lie already."""
_REFERENCES = re.compile(r"(?:^|/)\.git/(?:logs|refs)(?:/|$)")
"""Where names are those of branches."""
_UNSPELLED = "\\udc"
"""What stands for a byte that is no text: where such a folder is cannot be told by how it is shown."""


def list_steering_paths(workspace: Workspace, changes: Iterable[Change]) -> frozenset[str]:
    """Their paths. A folder is taken for a repository if it has a HEAD; what is made together with its HEAD, policy
    sees by itself."""
    looks = _Looks(workspace)
    return frozenset(
        change.path
        for change in changes
        for folder, name in list_possible_repositories(change.path)
        if not _REFERENCES.search(folder) and looks.steers(change, folder, name)
    )


class _Looks:
    """At folders, each once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names: dict[str, frozenset[str] | None] = {}

    def steers(self, change: Change, folder: str, name: str) -> bool:
        there = self._there(folder)
        if there is None:
            return _UNSPELLED in folder
        if is_git_control_name(name):
            return _HEAD in there
        is_made = change.action == "created" and change.path == (name if folder == "." else f"{folder}/{name}")
        makes_one = normalize_name(name) == _HEAD or (normalize_name(name) == _REFS and _HEAD in there)
        return is_made and makes_one and any(is_git_control_name(one) for one in there)

    def _there(self, folder: str) -> frozenset[str] | None:
        """The names in a folder; None where it is not there."""
        if folder not in self._names:
            self._names[folder] = self._listed(folder)
        return self._names[folder]

    def _listed(self, folder: str) -> frozenset[str] | None:
        try:
            with self._workspace.open_parent(os.fsencode(f"{'' if folder == '.' else folder + '/'}HEAD")) as landing:
                if landing.missing:
                    return None
                found = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=landing.folder)
            try:
                return frozenset(normalize_name(name) for name in os.listdir(found))
            finally:
                os.close(found)
        except (OSError, ToolError):
            return None
