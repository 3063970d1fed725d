"""Finds names that mix scripts, such as a host name with a Cyrillic letter."""

import re
import unicodedata

from handrail.protocol.text import escape_char

_NAME = re.compile(r"[\w.-]+")
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC")
"""Scripts without letters that look like Latin ones."""


def find_look_alikes(text: str) -> tuple[tuple[str, str], ...]:
    """The names with Latin and other letters, each with its other letters escaped."""
    if text.isascii():
        return ()
    names = dict.fromkeys(name for name in _NAME.findall(text) if _is_mixed(name))
    return tuple((name, _escape_letters(name)) for name in names)


def _is_mixed(name: str) -> bool:
    if name.isascii():
        return False
    scripts = {_find_script(char) for char in name if char.isalpha()}
    return len(scripts - set(_EAST_ASIAN)) > 1


def _find_script(char: str) -> str:
    """The script of a letter: the first word of its Unicode name."""
    return "LATIN" if char.isascii() else unicodedata.name(char, "?").partition(" ")[0].partition("-")[0]


def _escape_letters(name: str) -> str:
    return "".join(char if not char.isalpha() or _find_script(char) == "LATIN" else escape_char(char) for char in name)
