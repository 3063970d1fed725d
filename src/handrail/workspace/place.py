"""Reads a path as it was spelled: which root it means and which names below it. No disk is touched."""

import errno
import os

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.errors import clipped, outside
from handrail.workspace.root import Root


class Place(msgspec.Struct, frozen=True):
    """A root and the way below it, as spelled."""

    root: Root
    parts: tuple[str, ...]
    spelled: str
    path: str
    """The way below the root as text."""
    straight: str | None
    """The same without `.` and `..`: where it leads if no link is on the way; None when it leaves the root."""


def place(path: str, roots: tuple[Root, ...]) -> Place:
    """The place a path names; ToolError when it can be none, OSError EXDEV when it is in no root."""
    refuse_impossible(path)
    if not path.startswith("/"):
        return _placed(roots[0], _parts(path), path)
    parts = _parts(path)
    best: tuple[Root, tuple[str, ...]] | None = None
    for root in roots:
        rest = root.beneath(parts)
        if rest is not None and (best is None or len(rest) < len(best[1])):
            best = (root, rest)
    if best is None:
        raise outside(path)
    return _placed(best[0], best[1], path)


def refuse_impossible(path: str) -> None:
    """No file system has a file of this name."""
    if 0 < len(path) < 250 and path.isascii() and "\0" not in path:
        return  # nearly every path; what is below can only fail for the others
    if not path:
        raise ToolError("INVALID_ARGUMENT", "path is empty; pass a path relative to the workspace, or . for all of it.")
    if "\0" in path:
        raise ToolError("INVALID_ARGUMENT", f"path holds a NUL character: {clipped(path)}")
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise ToolError("INVALID_ARGUMENT", f"path is not valid text: {clipped(path)}") from None
    if length >= 4096:
        raise ToolError("INVALID_ARGUMENT", f"path is {length} bytes long; the system allows 4095: {clipped(path)}")
    if any(len(os.fsencode(part)) > 255 for part in path.split("/")):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)


def _placed(root: Root, parts: tuple[str, ...], spelled: str) -> Place:
    return Place(root, parts, spelled, "/".join(parts) or ".", normal(parts))


def normal(parts: tuple[str, ...]) -> str | None:
    """The path without `.` and `..`, right only where no link is on it; None when it leaves the root."""
    if ".." not in parts and "." not in parts:
        return "/".join(parts) or "."
    kept: list[str] = []
    for part in parts:
        if part == "..":
            if not kept:
                return None
            kept.pop()
        elif part != ".":
            kept.append(part)
    return "/".join(kept) or "."


def _parts(path: str) -> tuple[str, ...]:
    return tuple([part for part in path.split("/") if part])
