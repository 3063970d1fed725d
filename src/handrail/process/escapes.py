"""Finds the sequences that speak to a terminal: colours, cursor moves, titles, links."""

import re

MAX_TITLE_CHARS = 4096
"""Characters of a title or a link; what is longer is text that follows a broken beginning."""

_ESCAPE = "\x1b"
_PARAMETERS = r"\[[0-?]{0,64}+[ -/]{0,8}+"
_STRING = rf"[\]PX^_][^\x07\x18\x1a\x1b\r\n]{{0,{MAX_TITLE_CHARS}}}+"
# What is unfinished loses its beginning only: no sequence hides text that a terminal would show.
_SEQUENCE = re.compile(rf"\x1b(?:{_PARAMETERS}[@-~]?|{_STRING}(?:\x07|\x1b\\)|[ -/]{{1,8}}+[0-~]?|[0-~])?")
_UNFINISHED = re.compile(rf"\x1b(?:{_PARAMETERS}|{_STRING}\x1b?|[ -/]{{0,8}}+)\Z")
_TO_LINE_START = re.compile(r"\x1b\[[01]?G")


def remove_escapes(text: str) -> str:
    """The text without the sequences; what goes back to the beginning of the line is a return."""
    return _SEQUENCE.sub("", _TO_LINE_START.sub("\r", text)) if _ESCAPE in text else text


def count_unfinished_escape(text: str) -> int:
    """How many characters at the end may be the beginning of a sequence that goes on in what follows."""
    found = (
        _UNFINISHED.search(text, max(0, len(text) - MAX_TITLE_CHARS - 3))
        if _ESCAPE in text[-MAX_TITLE_CHARS - 3 :]
        else None
    )
    return len(text) - found.start() if found else 0
