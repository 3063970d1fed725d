"""Characters that look like others: models write plain ones for them, or them for plain ones."""

import re

_FOLDS = {
    '"': "“”„‟″",
    "'": "‘’‚‛′",
    "-": "‐‑‒–—―−",
    ",": "，",
    "(": "（",
    ")": "）",
    ":": "：",
    ";": "；",
    "...": "…",
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    "": "\u200b\u200c\u200d\u2060\ufeff\u00ad",
}
PLAIN_CHARACTERS = {odd: plain for plain, odds in _FOLDS.items() for odd in odds}
"""What each of them is folded to."""
_LAST_COMMA = re.compile(r"(?<=[^\n]),(?=\n|\Z)")
_SPACES = "".join(character for character in map(chr, range(0x3001)) if character.isspace() and character != "\n")


def fold_typography(text: str) -> str:
    """The text with the plain characters."""
    if text.isascii():
        return text
    for (
        odd,
        plain,
    ) in PLAIN_CHARACTERS.items():  # one pass each, where it is there at all: quicker than a table for all characters
        if odd in text:
            text = text.replace(odd, plain)
    return text


def squash_spaces(text: str) -> str:
    """The text with plain characters and without white space; it has as many lines."""
    text = fold_typography(text)
    for space in _SPACES:
        if space in text:
            text = text.replace(space, "")
    return text


def loosen_punctuation(text: str) -> str:
    """The text squashed, with one kind of quotes and without commas at the ends of lines; it has as many lines."""
    return _LAST_COMMA.sub("", squash_spaces(text).replace("'", '"'))
