"""Text as it can be told apart by eye: spaces, tabs and characters that look like others."""

from handrail.protocol.text import truncate

_SEEN = {" ": "·", "\t": "→", "\r": "␍", "\n": "␤"}


def escape_white_space(text: str, most: int = 80) -> str:
    """A short text with its white space made visible."""
    return truncate("".join(map(_character, text[: most + 1])), most)


def format_code_points(text: str, other: str) -> str:
    """The characters beyond ASCII that only the first of two texts has, by their numbers: they may look like others."""
    odd = dict.fromkeys(character for character in text if not character.isascii() and character not in other)
    names = [f"U+{ord(character):04X}" for character in odd if character.isprintable()]
    return f" ({', '.join(names[:3])})" if names else ""


def _character(character: str) -> str:
    if character in _SEEN:
        return _SEEN[character]
    return character if character.isprintable() else f"<U+{ord(character):04X}>"
