"""What may follow the words of an allow rule: plain options, and operands that are paths inside the roots."""

import posixpath
import re
from collections.abc import Callable

Inside = Callable[[str], bool]
"""Whether a word, taken as a path, lies inside the roots."""

_OPTION = re.compile(r"-[A-Za-z0-9_-]*|--[A-Za-z0-9][A-Za-z0-9_-]*=(?P<value>[\w.,:=+@%/-]*)")
# What a program may hand on to a shell, or read as a command of its own: no path that anybody means.
_ODD = re.compile(r"[\x00-\x1f\x7f$`;|&<>'\"\\]")
# A path may also stand behind one of these: of=/dev/sda, src:/etc, @/etc/passwd, type=bind,src=/.
_SEPARATORS = re.compile(r"[=:,@]+")


def is_plain(word: str, inside: Inside) -> bool:
    """Whether a word adds nothing that an allow rule would have to name: `-x`, `--name=value`, `tests/cart`."""
    if not word.startswith("-"):
        return word != "" and not _ODD.search(word) and _all_inside(word, inside)
    option = _OPTION.fullmatch(word)
    if option is None:
        return False
    return option["value"] is None or _all_inside(option["value"], inside)


def is_inside_by_spelling(word: str) -> bool:
    """Inside by its spelling alone: for the examples of rules, which are about no workspace in particular."""
    return not word.startswith(("/", "~")) and posixpath.normpath(word).split("/", 1)[0] != ".."


def _all_inside(word: str, inside: Inside) -> bool:
    pieces = [word, *_SEPARATORS.split(word)] if _SEPARATORS.search(word) else [word]
    return all(inside(piece) and piece[0] != "~" for piece in pieces if piece)
