"""What a tree is: of every path its kind, mode, content and more, to be compared with another."""

import hashlib
import os
import stat
import subprocess
from collections import defaultdict
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from layer_scripts.start import GIT


class Thing(msgspec.Struct, frozen=True):
    """What is at one path."""

    kind: str
    mode: int
    content: str
    """A hash of the bytes, or where a link leads."""
    attributes: tuple[tuple[str, bytes], ...]
    names: tuple[bytes, ...] = ()
    """The names of the same file in the tree, where there are several."""
    mtime: int = 0


Tree = dict[bytes, Thing]
_NOTED_BY_GIT = b".git/index"
"""It has change times and inode numbers in it: what is staged is compared instead."""


def tree_of(place: Path) -> Tree:
    """Everything in a folder."""
    root = os.fsencode(place)
    found: Tree = {}
    names: defaultdict[tuple[int, int], list[bytes]] = defaultdict(list)
    for folder, below, files in os.walk(root):
        for name in (*below, *files):
            full = os.path.join(folder, name)
            path = full[len(root) + 1 :]
            status = os.lstat(full)
            found[path] = _thing(full, status)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                names[status.st_dev, status.st_ino].append(path)
    for paths in names.values():
        for path in paths if len(paths) > 1 else ():
            found[path] = msgspec.structs.replace(found[path], names=tuple(sorted(paths)))
    return found


def _thing(path: bytes, status: os.stat_result) -> Thing:
    kind, content = stat.S_IFMT(status.st_mode), ""
    if stat.S_ISLNK(kind):
        return Thing("link", 0, os.fsdecode(os.readlink(path)), ())
    attributes = tuple((name, os.getxattr(path, name)) for name in sorted(os.listxattr(path)) if name[:5] == "user.")
    if stat.S_ISREG(kind):
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "blake2b").hexdigest()
    name = {stat.S_IFREG: "file", stat.S_IFDIR: "folder"}.get(kind, oct(kind))
    return Thing(name, stat.S_IMODE(status.st_mode), content, attributes, (), status.st_mtime_ns)


class Start(NamedTuple):
    """The tree that a script began with, and when that was."""

    tree: Tree
    began: int


def differences(expected: Tree, found: Tree, start: Start | None = None) -> list[str]:
    """What is not as expected. With the start, which names are one file and attributes count where something was
    changed since; and dates that were set by hand do, which are those before the run."""
    told = [f"{path!r} is missing: {expected[path]!r:.150}" for path in sorted(expected.keys() - found.keys())]
    told += [f"{path!r} is extra: {found[path]!r:.150}" for path in sorted(found.keys() - expected.keys())]
    changed = _changed(expected, start.tree) if start else {*expected}
    for path in sorted(expected.keys() & found.keys()):
        told += [
            f"{path!r}: {field} is {there!r:.150} and not {meant!r:.150}"
            for field in _compared(path, expected[path], start, changed)
            if (there := _seen(found[path], field, changed)) != (meant := _seen(expected[path], field, changed))
        ]
    return told


def _changed(tree: Tree, start: Tree) -> set[bytes]:
    parts = attrgetter("kind", "mode", "content")
    return {path for path, thing in tree.items() if path not in start or parts(start[path]) != parts(thing)}


def _compared(path: bytes, one: Thing, start: Start | None, changed: set[bytes]) -> list[str]:
    fields = ["kind", "mode"]
    if start is None or not path.endswith(_NOTED_BY_GIT):
        fields.append("content")
    if start is None:
        return [*fields, "names", "attributes"]
    if path not in changed:
        return fields
    before = start.tree.get(path)
    if before is None or before.content != one.content:
        fields += ["names", "attributes"]
    if before is None and one.kind == "file" and one.mtime < start.began:
        fields.append("mtime")
    return fields


def _seen(thing: Thing, field: str, changed: set[bytes]) -> object:
    """Of names those that were changed: one that was taken apart from others, and holds the same, is no change."""
    if field != "names":
        return getattr(thing, field)
    names = [name for name in thing.names if name in changed]
    return names if len(names) > 1 else []


def repositories_of(place: Path) -> dict[str, tuple[str, str]]:
    """Of every repository what git says of its objects, and what is staged and changed."""
    places = sorted(
        os.path.dirname(folder) for folder, below, _ in os.walk(place) if os.path.basename(folder) == ".git"
    )
    return {
        os.path.relpath(one, place): (
            _git(one, "fsck", "--full", "--strict", "--no-dangling"),
            _git(one, "ls-files", "--stage", "-z") + _git(one, "status", "--porcelain", "-z"),
        )
        for one in places
    }


def _git(place: str, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_OPTIONAL_LOCKS": "0", **GIT}
    done = subprocess.run(["git", *words], cwd=place, env=environment, capture_output=True, check=False)
    return f"{done.returncode} {done.stdout!r} {done.stderr!r}"
