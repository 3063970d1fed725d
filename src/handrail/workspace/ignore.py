"""Which folders and files searches and deep listings pass over: one list for all tools."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

ALWAYS = (".git", "node_modules", "dist", "build", ".next")
TEMPORARY = ".handrail-"
"""How the names of our own unfinished files begin."""
_LARGEST = 1 << 16
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STARS = 3
"""More of them in one name take seconds to match against a long one, and no real list has them."""


class Ignore:
    """The rules that hold in one folder: its own, its parents' and the built-in ones."""

    __slots__ = ("_extra", "_path", "_rules")

    def __init__(
        self, extra: "GitIgnoreSpec | None" = None, path: str = "", rules: "tuple[tuple[str, GitIgnoreSpec], ...]" = ()
    ) -> None:
        self._extra = extra
        self._path = path
        self._rules = rules

    def inside(self, folder: int, name: str) -> "Ignore":
        """The rules of a folder that was just entered, with those its own .gitignore adds."""
        path = f"{self._path}{name}/" if name else self._path
        own = _read(folder)
        added = ((path, own),) if own else ()
        return Ignore(self._extra, path, self._rules + added)

    def matches(self, name: str, *, folder: bool) -> bool:
        """Whether a name in this folder is passed over."""
        if name in ALWAYS or name.startswith(TEMPORARY):
            return True
        path = f"{self._path}{name}{'/' if folder else ''}"
        if self._extra is not None and self._extra.match_file(path):
            return True
        for base, rules in reversed(self._rules):
            verdict = rules.check_file(path[len(base) :]).include
            if verdict is not None:
                return verdict
        return False


def rules_at(root: int, relative: str, patterns: tuple[str, ...] = ()) -> Ignore:
    """The rules of a folder below an open root, its parents' included; `patterns` are written as in a .gitignore.

    A folder that they pass over was asked for by name, so what passes it over does not hold in it.
    """
    extra = _spec(list(patterns)) if patterns else None
    ignore, folder = Ignore(extra).inside(root, ""), os.dup(root)
    try:
        for name in relative.split("/") if relative != "." else ():
            folder, outer = os.open(name, _FOLDER, dir_fd=folder), folder
            os.close(outer)
            ignore = (Ignore(extra) if ignore.matches(name, folder=True) else ignore).inside(folder, name)
    finally:
        os.close(folder)
    return ignore


def _read(folder: int) -> "GitIgnoreSpec | None":
    try:
        descriptor = os.open(".gitignore", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        text = os.read(descriptor, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return _spec(text.split("\n"))


def _spec(lines: list[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  costs start-up time, and only deep walks need it

    lines = [line for line in lines if all(name.count("*") <= _STARS for name in line.split("/"))]
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines(_valid(lines, GitIgnoreSpec))


def _valid(lines: list[str], spec: "type[GitIgnoreSpec]") -> list[str]:
    """The lines that are patterns: one broken line does not void the others."""
    kept: list[str] = []
    for line in lines:
        try:
            spec.from_lines([line])
        except ValueError:
            continue
        kept.append(line)
    return kept
