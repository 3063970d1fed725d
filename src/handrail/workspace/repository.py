"""Whether a folder is a git repository, or becomes one, whatever it is called."""

import os

from handrail.policy.names import is_git_control_name
from handrail.policy.spelling import normalize_name

_MADE_OF = ("HEAD", "objects", "refs", "commondir")


def is_repository_change(folder: int, name: str, *, adds: bool) -> bool:
    """Whether a change of a name in a folder steers the repository that the folder is, or makes it one."""
    if normalize_name(name) != "head" and not _exists(folder, "HEAD"):
        return False  # hardly any folder has one
    there = {part for part in _MADE_OF if _exists(folder, part)}
    if _is_repository(there):
        return is_git_control_name(name)
    return adds and _is_repository(there | {part for part in _MADE_OF if part.casefold() == normalize_name(name)})


def _is_repository(there: set[str]) -> bool:
    return "HEAD" in there and ("commondir" in there or {"objects", "refs"} <= there)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True
