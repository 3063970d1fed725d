"""Globs as ripgrep reads them, for paths below the folder that is searched."""

import re
from collections.abc import Callable, Iterator

from handrail.protocol.error import ToolError
from handrail.workspace.errors import clipped

Matches = Callable[[bytes], bool]
"""Whether a path is meant."""


_SPECIAL = {"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}


def matcher(glob: str) -> Matches:
    """Without a slash the glob is about the name at any depth, with one about the way from the folder on."""
    path = glob.removeprefix("/")
    anywhere = "" if "/" in glob else "(?:.*/)?"
    try:
        pattern = re.compile(f"{anywhere}{''.join(_pieces(path, glob))}".encode(), re.DOTALL)
    except (re.error, UnicodeEncodeError):
        raise _broken(glob) from None
    return lambda found: pattern.fullmatch(found) is not None


def _pieces(path: str, glob: str) -> Iterator[str]:
    position, depth = 0, 0
    while position < len(path):
        piece, position, depth = _piece(path, position, depth, glob)
        yield piece
    if depth:
        raise _broken(glob)


def _piece(path: str, at: int, depth: int, glob: str) -> tuple[str, int, int]:
    """The expression for what stands at a place, where the next begins, and how many braces are open."""
    starts = at == 0 or path[at - 1] == "/"
    if starts and path.startswith("**/", at):
        return "(?:.*/)?", at + 3, depth
    if starts and path[at:] == "**":
        return ".*", len(path), depth
    character = path[at]
    if character == "[":
        return *_class(path, at, glob), depth
    if character == "\\" and at + 1 < len(path):
        return re.escape(path[at + 1]), at + 2, depth
    if character in "*?{" or (character in "}," and depth):
        return _SPECIAL[character], at + 1, depth + {"{": 1, "}": -1}.get(character, 0)
    return re.escape(character), at + 1, depth


def _class(path: str, at: int, glob: str) -> tuple[str, int]:
    inverted = path[at + 1 : at + 2] in {"!", "^"}
    first = at + (2 if inverted else 1)
    end = path.find("]", first + 1)
    if end < 0:
        raise _broken(glob)
    body = re.sub(r"([\\\[\]&~|^])", r"\\\1", path[first:end])
    return f"(?!/)[{'^' if inverted else ''}{body}]", end + 1


def _broken(glob: str) -> ToolError:
    return ToolError("INVALID_ARGUMENT", f"{clipped(glob)} is no valid glob; write for example *.py or src/**/*.ts.")
