"""Follows `cd` through a command: every folder that the shell may be in, depending on which commands succeed."""

import posixpath
from itertools import dropwhile

from handrail.policy.shell.script import Join

_MAX_FOLDERS = 16


class DirectoryTracker:
    """Where the shell may be, command by command."""

    def __init__(self, cwd: str, there: tuple[str, ...] = ()) -> None:
        self.here: tuple[str, ...] = (cwd,)
        """The folders in which the next command may run."""
        self._there = there
        self._ever = {cwd: None}
        self._piped = self._skipped = False
        self._reached = True
        """Whether the next command runs for certain."""

    @property
    def is_fed(self) -> bool:
        """Whether the next command reads what the one before it says."""
        return self._piped

    @property
    def is_lost(self) -> bool:
        """Whether there are too many folders to look at."""
        return len(self._ever) > _MAX_FOLDERS

    def advance(self, target: str | None, join: Join) -> None:
        """To what stands behind a join; the command before it leads to the target, or moves nothing."""
        arrived = False
        if target is not None and not self._piped and join != "|":  # in a pipeline it moves only a shell of its own
            arrived = self._move(resolve_cd(self.here, target))
        self._piped, self._skipped = join == "|", join == "||"  # behind || it runs only if what is before it fails
        self._reached = join == ";" or (arrived and join == "&&")
        if join in {";", "||"}:  # whatever succeeded before, the shell may be in any of them
            self.here = tuple(self._ever)

    def _move(self, places: tuple[str, ...]) -> bool:
        """Whether the shell is there for certain: the command runs, and every folder it may lead to is there."""
        if self._reached and all(place in self._there for place in places):
            self.here, self._ever = places, dict.fromkeys(places)
            return True
        stayed = self.here if self._skipped else ()
        self.here = tuple(dict.fromkeys([*stayed, *places]))
        self._ever.update(dict.fromkeys(self.here))
        return False


def resolve_cd(folders: tuple[str, ...], target: str) -> tuple[str, ...]:
    """Where `cd` may lead from any of these folders.

    To bash `..` goes by the name, not by where a link leads. But where there is no folder of that name it lets the
    system go there, and to that `..` is the folder above the one that the link leads to.
    """
    ways = [posixpath.join(folder, target).removeprefix("./") for folder in folders]
    places = [place for way in ways for place in (posixpath.normpath(way), *([way] if _turns_back(way) else ()))]
    return tuple(dict.fromkeys(places))


def _turns_back(way: str) -> bool:
    """Whether a path goes up from a name in it, which may be a link."""
    names = [name for name in way.split("/") if name not in {"", "."}]
    return ".." in dropwhile("..".__eq__, names)
