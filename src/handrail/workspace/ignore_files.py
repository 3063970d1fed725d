"""Finds and reads the ignore files of a walk: those in its folders, and the person's own for every repository."""

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.workspace.ignore_file import IgnoreRules

STRONG = (".rgignore", ".ignore")
"""Files with rules that win over git's."""
FILES = (*STRONG, ".gitignore", ".git/info/exclude")
"""The files with rules that a folder may have, those that win first."""

_MAX_RULE_BYTES = 1 << 20
"""Bytes of rules in one walk: many times what a large project has."""
_MAX_RULE_COST = 1 << 19
"""What trying the rules of one walk may cost (`Rules.cost`): a few lines of alternatives are as many as a megabyte."""
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_INNER_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class IgnoreFiles:
    """Reads ignore files until they are more than any project has."""

    __slots__ = ("_cost", "_left", "gap")

    def __init__(self) -> None:
        self._left, self._cost = _MAX_RULE_BYTES, _MAX_RULE_COST
        self.gap: str | None = None
        """Why some rules are not known, if so."""

    def of_folder(self, folder: int) -> "list[IgnoreRules | None]":
        """The rules in each of FILES in an open folder."""
        return [self._read_inside(folder, name) for name in FILES]

    def of_person(self) -> "IgnoreRules | None":
        """The rules of git's `core.excludesFile`, or of the file that git reads without that setting."""
        path = _excludes_file()
        return self._read(path, None) if path.startswith("/") else None

    def _read_inside(self, folder: int, name: str) -> "IgnoreRules | None":
        outer, _, rest = name.partition("/")
        if not rest:
            return self._read(name, folder)
        try:
            inner = os.open(outer, _INNER_FOLDER, dir_fd=folder)
        except OSError:
            return None
        try:
            return self._read_inside(inner, rest)
        finally:
            os.close(inner)

    def _read(self, name: str, folder: int | None) -> "IgnoreRules | None":
        if self._cost < 0:
            return None
        data = _content(name, folder, self._left + 1)
        if len(data) > self._left:
            self.gap = f"the ignore files have more than {_MAX_RULE_BYTES >> 20} MB"
            return None
        self._left -= len(data)
        rules = _rules_of(data) if data else None
        if rules is None:
            return None
        self._cost -= rules.cost
        if rules.incomplete or self._cost < 0:
            self.gap = "an ignore file has lines that are too long or have too many alternatives"
        return rules if self._cost >= 0 else None


def parse_settings_rules(patterns: tuple[str, ...]) -> "IgnoreRules":
    """The rules that the settings spell out."""
    from handrail.workspace.ignore_file import IgnoreRules  # noqa: PLC0415  only walks need it

    return IgnoreRules(list(patterns))


def _rules_of(data: bytes) -> "IgnoreRules | None":
    from handrail.workspace.ignore_file import parse_ignore_rules  # noqa: PLC0415  only walks that meet an ignore file need it

    return parse_ignore_rules(data)


def _excludes_file() -> str:
    home = os.path.expanduser("~")
    settings = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    for path in (f"{home}/.gitconfig", f"{settings}/git/config"):
        named = _named_in(_content(path, None, 1 << 20))
        if named:
            return os.fsdecode(named).replace("~", home)
    return f"{settings}/git/ignore"


def _named_in(configuration: bytes) -> bytes:
    """The file that settings of git name, in whatever section: ripgrep looks no closer. Paths with spaces are passed
    over, as they are there."""
    for line in configuration.split(b"\n"):
        key, _, value = line.partition(b"=")
        if key.strip().lower() == b"excludesfile":
            path = value.strip().removeprefix(b'"').removesuffix(b'"').strip()
            if len(path.split()) == 1:
                return path
    return b""


def _content(name: str, folder: int | None, most: int) -> bytes:
    """The beginning of a regular file; nothing when it is none. In the workspace, a link is not followed."""
    try:
        descriptor = os.open(name, _READ if folder is None else _READ | os.O_NOFOLLOW, dir_fd=folder)
    except (OSError, ValueError):
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return _bytes(descriptor, most)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _bytes(descriptor: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (part := os.read(descriptor, most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)
