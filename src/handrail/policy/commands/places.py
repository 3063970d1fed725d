"""Places that no command may delete or overwrite, by how a word spells them."""

import posixpath
import re
from typing import Literal

PlaceKind = Literal["root", "home", "below home", "workspace", "device"]

_HOME = re.compile(r"(?:~(?![+-])[\w.-]*|\$HOME(?!\w)|\$\{HOME(?!\w)[^}]*\})(/.*)?", re.DOTALL)
_FOLDER = re.compile(r"(?:~\+|\$PWD(?!\w)|\$\{PWD(?!\w)[^}]*\}|\$\(\s*pwd\s*\)|`\s*pwd\s*`)(/.*)?", re.DOTALL)
_EVERYTHING = re.compile(r"\?*\*[*?]*|\.\*|\.\[[!^]\.\]\*|\.\?\?\*")
_SOMEONE = "/home/someone"
_HOMES = re.compile(r"/root|/var/root|/(?:home|Users)(?:/[^/]+)?")
SINKS = frozenset(["/dev/null", "/dev/stdout", "/dev/stderr"])
"""Devices that anything may be written to: they keep nothing."""


def find_place_kind(word: str, *, literal: bool) -> PlaceKind | None:
    """Which of these places a word stands for as a whole. Unless it is `literal`, bash expands `~` and `$HOME`."""
    home = None if literal else _HOME.fullmatch(word)
    folder = None if literal else _FOLDER.fullmatch(word)
    spelled = _SOMEONE + (home[1] or "") if home else "." + (folder[1] or "") if folder else word
    path = _plain(spelled)
    if path.startswith("/"):
        return _absolute(_without_everything(path)) or ("below home" if home else None)
    return "workspace" if path == "." and word else None


def _absolute(path: str) -> PlaceKind | None:
    if path == "/":
        return "root"
    if _HOMES.fullmatch(path):
        return "home"
    return "device" if path.startswith("/dev/") and path not in SINKS else None


def _plain(path: str) -> str:
    plain = posixpath.normpath(path)
    return "/" + plain.lstrip("/") if plain.startswith("/") else plain


def _without_everything(path: str) -> str:
    """The folder itself where the last names are patterns that match all that is in it."""
    while _EVERYTHING.fullmatch(posixpath.basename(path)):
        path = posixpath.dirname(path)
    return path
