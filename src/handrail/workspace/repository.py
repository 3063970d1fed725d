"""Whether a folder is a git repository, or becomes one, whatever it is called."""

import os

from handrail.policy.names import steers_repository
from handrail.policy.spelling import folded

_MADE_OF = ("HEAD", "objects", "refs", "commondir")


def changes_repository(folder: int, name: str, *, adds: bool) -> bool:
    """Whether a change of a name in a folder steers the repository that the folder is, or makes it one."""
    if folded(name) != "head" and not _exists(folder, "HEAD"):
        return False  # hardly any folder has one
    there = {part for part in _MADE_OF if _exists(folder, part)}
    if _is_repository(there):
        return steers_repository(name)
    return adds and _is_repository(there | {part for part in _MADE_OF if part.casefold() == folded(name)})


def _is_repository(there: set[str]) -> bool:
    return "HEAD" in there and ("commondir" in there or {"objects", "refs"} <= there)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True
