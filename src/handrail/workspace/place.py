"""Reads a path as it was spelled: which root it means and which names below it. No disk is touched."""

import errno
import os

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.errors import build_outside_error, clip_path
from handrail.workspace.root import Root


class SpelledPath(msgspec.Struct, frozen=True):
    """A root and the way below it, as spelled."""

    root: Root
    parts: tuple[str, ...]
    spelled: str
    path: str
    """The way below the root as text."""
    owner: Root
    """The innermost root the place is in, if no link is on the way."""
    straight: str | None
    """The way below that root without `..`, if no link is on the way; None when it leaves the roots."""
    named: str | None
    """The same as results name it."""


def parse_path(path: str, roots: tuple[Root, ...]) -> SpelledPath:
    """The place a path names; ToolError when it can be none, OSError EXDEV when it is in no root."""
    refuse_impossible(path)
    if not path.startswith("/"):
        return _placed(roots[0], _split_path(path), path, roots)
    parts = _split_path(path)
    found = find_innermost_root(parts, roots)
    if found is None:
        raise build_outside_error(path)
    return _placed(*found, path, roots)


def find_innermost_root(parts: tuple[str, ...], roots: tuple[Root, ...]) -> tuple[Root, tuple[str, ...]] | None:
    """The root nearest to what an absolute path names, and the rest of the path below it."""
    best: tuple[Root, tuple[str, ...]] | None = None
    for root in roots:
        rest = root.beneath(parts)
        if rest is not None and (best is None or len(rest) < len(best[1])):
            best = (root, rest)
    return best


def refuse_impossible(path: str) -> None:
    """No file system has a file of this name."""
    if 0 < len(path) < 250 and path.isascii() and "\0" not in path:
        return  # nearly every path; what is below can only fail for the others
    if not path:
        raise ToolError("INVALID_ARGUMENT", "path is empty; pass a path relative to the workspace, or . for all of it.")
    if "\0" in path:
        raise ToolError("INVALID_ARGUMENT", f"path holds a NUL character: {clip_path(path)}")
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise ToolError("INVALID_ARGUMENT", f"path is not valid text: {clip_path(path)}") from None
    if length >= 4096:
        raise ToolError("INVALID_ARGUMENT", f"path is {length} bytes long; the system allows 4095: {clip_path(path)}")
    if any(len(os.fsencode(part)) > 255 for part in path.split("/")):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)


def _placed(root: Root, parts: tuple[str, ...], spelled: str, roots: tuple[Root, ...]) -> SpelledPath:
    path = "/".join(parts) or "."
    straight = _without_dots(parts)
    found = find_innermost_root(root.parts + straight, roots) if straight is not None else None
    if found is None:
        return SpelledPath(root, parts, spelled, path, root, None, None)
    owner, rest = found[0], "/".join(found[1]) or "."
    return SpelledPath(root, parts, spelled, path, owner, rest, owner.display_path(rest))


def _without_dots(parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names without `..`, right only where no link is on the way; None when they leave the root."""
    if ".." not in parts:
        return parts
    kept: list[str] = []
    for part in parts:
        if part != "..":
            kept.append(part)
        elif kept:
            kept.pop()
        else:
            return None
    return tuple(kept)


def _split_path(path: str) -> tuple[str, ...]:
    return tuple([part for part in path.split("/") if part not in {"", "."}])
