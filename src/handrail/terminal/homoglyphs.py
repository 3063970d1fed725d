"""Finds names that mix scripts."""

import re
import unicodedata

from handrail.protocol.text import escape_char

_NAME = re.compile(r"[\w.-]+")
_MIXED_EVERYWHERE = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC")
"""Nobody takes these for Latin letters."""


def find_look_alikes(text: str) -> tuple[tuple[str, str], ...]:
    """The names in a text whose letters are Latin and something else, each with its other letters written out."""
    if text.isascii():
        return ()
    names = dict.fromkeys(name for name in _NAME.findall(text) if _is_mixed(name))
    return tuple((name, _written_out(name)) for name in names)


def _is_mixed(name: str) -> bool:
    if name.isascii():
        return False
    scripts = {_script(char) for char in name if char.isalpha()}
    return len(scripts - set(_MIXED_EVERYWHERE)) > 1


def _script(char: str) -> str:
    """The script of a letter, as the first word of its name says."""
    return "LATIN" if char.isascii() else unicodedata.name(char, "?").partition(" ")[0].partition("-")[0]


def _written_out(name: str) -> str:
    return "".join(char if not char.isalpha() or _script(char) == "LATIN" else escape_char(char) for char in name)
