"""What a script that is being made may count on: which files, folders and links there are by now.

It need not be right. A command that fails, fails in both ways to run it, and leaves the same.
"""

import math
import random
import re
from collections.abc import Callable
from typing import Literal

Kind = Literal["file", "folder", "link", "shared"]
"""`shared`: a file that had several names before the script began."""
Operation = Callable[["Scene"], "str | None"]
"""Draws a command; None where there is nothing to do it to."""

_PLAIN = re.compile(rb"[A-Za-z0-9_./@+=:-]+")
_WORDS = ("alpha", "beta", "gamma", "delta", "omega", "index", "main", "notes", "report", "table", "util", "view")
_ENDINGS = ("", ".txt", ".py", ".js", ".md", ".bin")
_ODD = (
    b"with space",
    b"two\nlines",
    b"caf\xe9",
    b"-dash",
    b"tab\tbed",
    b"quote'd",
    b"\xff\xfe",
    b"back\\slash",
    b"$HOME",
)


class Scene:
    """The tree as its script knows it."""

    def __init__(self, draw: random.Random, *, precise: bool) -> None:
        """`precise`: whether the layer can tell a name that was taken apart from one that was written through."""
        self.draw = draw
        self.precise = precise
        self.kinds: dict[bytes, Kind] = {}
        self.repository: bytes | None = None
        """The folder that has one, empty for the tree itself."""
        self.branches = 0
        self._used: set[bytes] = set()
        """Names of shared files that something was done to."""
        self._linked: set[bytes] = set()
        """Files that got another name."""

    def add(self, path: bytes, kind: Kind) -> bytes:
        self.remove(path)
        self.kinds[path] = kind
        return path

    def remove(self, path: bytes) -> None:
        """Without it, and without all in it."""
        self.kinds = {one: kind for one, kind in self.kinds.items() if one != path and not one.startswith(path + b"/")}

    def move(self, old: bytes, new: bytes) -> None:
        moved = {new + one[len(old) :]: kind for one, kind in self.kinds.items() if (one + b"/").startswith(old + b"/")}
        self.remove(old)
        self.remove(new)
        self.kinds |= moved

    def any(self, *kinds: Kind) -> bytes | None:
        """One of those that are there. One of several names of a file comes once, and is not removed with its folder
        afterwards: what was written through it would be in the layer, and by no name."""
        found = sorted(path for path, kind in self.kinds.items() if kind in kinds and not self._is_used(path, kind))
        path = self.draw.choice(found) if found else None
        if path is not None and self.kinds[path] == "shared":
            together = set() if self.precise else {one for one, kind in self.kinds.items() if kind == "shared"}
            self._used |= {path, *together}
        return path

    def _is_used(self, path: bytes, kind: Kind) -> bool:
        return any(one == path or (kind == "folder" and one.startswith(path + b"/")) for one in self._used)

    def file(self) -> bytes | None:
        """A file that anything can be done to."""
        return self.any("file", "shared") if self.precise else self.any("file")

    def share(self, path: bytes) -> bytes:
        """Another name for a file: what has one of the two in it is not moved. Where the layer does not keep names
        together, both are left alone from then on."""
        new = self.add(self.fresh(), "file")
        self._linked |= {path, new}
        if not self.precise:
            self.kinds |= {path: "shared", new: "shared"}
            self._used |= {path, new}
        return new

    def folder(self) -> bytes | None:
        """A folder that can be moved or copied: with all the names of what is in it, or with none of them."""
        found = sorted(path for path, kind in self.kinds.items() if kind == "folder" and not self._parts(path))
        return self.draw.choice(found) if found else None

    def _parts(self, folder: bytes) -> bool:
        shared = [path for path, kind in self.kinds.items() if kind == "shared"]
        inside = [path for path in shared if path.startswith(folder + b"/")]
        linked = any(path.startswith(folder + b"/") for path in self._linked)
        return linked or 0 < len(inside) < (len(shared) if self.precise else math.inf)

    def fresh(self) -> bytes:
        """A path at which there is nothing, in a folder that there is."""
        folders = [b"", *sorted(path for path, kind in self.kinds.items() if kind == "folder")]
        while True:
            path = self.draw.choice(folders)
            path = (path + b"/" if path else b"") + self.name()
            if path not in self.kinds:
                return path

    def name(self) -> bytes:
        if self.draw.random() < 0.12:
            return self.draw.choice(_ODD) + b"%d" % self.draw.randrange(9)
        word, ending = self.draw.choice(_WORDS), self.draw.choice(_ENDINGS)
        return f"{word}{self.draw.randrange(30)}{ending}".encode()

    def number(self) -> int:
        return self.draw.randrange(1, 1000)


def quoted(path: bytes) -> str:
    """As bash reads it back, and as no program takes for an option."""
    path = b"./" + path if path.startswith(b"-") else path
    if _PLAIN.fullmatch(path):
        return path.decode()
    return (
        "$'"
        + "".join(chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\{byte:03o}" for byte in path)
        + "'"
    )
