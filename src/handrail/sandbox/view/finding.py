"""Looks places up on the disk: past the links that lead to them, which a view keeps as they are."""

import os
from collections.abc import Iterator

from handrail.sandbox.view.mounts import Mount

_MAX_LINKS = 40


def find_mounts(path: str) -> tuple[Mount, ...]:
    """What shows a file or folder in a view: the links on the way to it, and itself. Nothing where it is not there."""
    links, real = follow_links(path)
    if real == "/" or not os.path.lexists(real):
        return ()
    return (*links, Mount("shown", real))


def follow_links(path: str) -> tuple[tuple[Mount, ...], str]:
    """The links on the way to a path, each at its own real place, and where it leads to."""
    links: list[Mount] = []
    at, left = "", path.split("/")[::-1]
    while left:
        name = left.pop()
        if name in {"", ".", ".."}:
            at = os.path.dirname(at) if name == ".." else at
            continue
        target = _target(f"{at}/{name}") if len(links) < _MAX_LINKS else ""
        if target:
            links.append(Mount("link", f"{at}/{name}", target))
            left += target.split("/")[::-1]
            at = "" if target.startswith("/") else at
        else:
            at = f"{at}/{name}"
    return tuple(links), at or "/"


def build_empty_mount(path: str) -> Mount:
    """Something empty that lies over a file or folder."""
    return Mount("no-folder" if os.path.isdir(path) else "no-file", path)


def list_folder(folder: str) -> Iterator[str]:
    """The paths in a folder; none where it cannot be listed."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (f"{folder}/{name}" for name in sorted(names))


def has_content(folder: str) -> bool:
    """Whether there is anything in a folder; one that cannot be listed may well hold something."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except PermissionError:
        return True
    except OSError:
        return False


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except (OSError, ValueError):  # no link
        return ""
