"""Lines in words and signs, with the white space before each of them."""

import re
from typing import NamedTuple

from handrail.edit.ladder.typography import fold_typography

_TOKEN = re.compile(r"(\s*)(\w+|[^\w\s]|$)")
_WORD = re.compile(r"\w+|[^\w\s]")


class Token(NamedTuple):
    """A word or a sign; the last of a line is empty, and has the white space at its end."""

    space: str
    text: str


def split_tokens(line: str) -> list[Token]:
    """All of a line: joined, they are the line again."""
    found = [Token(*match.groups()) for match in _TOKEN.finditer(line)]
    # After white space at the end, the end itself is found once more.
    return found[:-1] if len(found) > 1 and not found[-2].text else found


def split_words(line: str) -> list[str]:
    """What a line says, whatever its white space is."""
    return _WORD.findall(line)


def split_plain_words(line: str) -> list[str]:
    """What a line says, however its characters look."""
    return _WORD.findall(fold_typography(line))


def extract_indent(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]
