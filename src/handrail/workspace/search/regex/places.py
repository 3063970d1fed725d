"""Places between characters, as Rust sees them: edges of lines and of words, also beside bytes that are no UTF-8."""

from handrail.workspace.search.regex.characters import is_word
from handrail.workspace.search.regex.tree import Position


def is_at(position: Position, text: str, at: int, end: int) -> bool:
    """Whether a place in a line that ends at `end` is of a kind."""
    before, after = text[at - 1 : at], text[at : at + 1] if at < end else ""
    if position == "line start":
        return before in {"", "\n"} or (before == "\r" and after != "\n")
    if position == "line end":
        return after in {"", "\r"} or (after == "\n" and before != "\r")
    word_before, stray_before = _before(text, at)
    word_after = _is_word(after)
    if position == "no boundary":
        return word_before == word_after and not stray_before and not is_stray(after)
    if position == "boundary":
        return word_before != word_after
    return word_after and not word_before if position == "word start" else word_before and not word_after


def _before(text: str, at: int) -> tuple[bool, bool]:
    """Whether a word's character stands before a place, and whether a byte that belongs to no character.

    Rust goes back from the place to where a character can begin, at most four bytes, and does not mind if that
    character ends too early: bytes that could continue a character are overlooked.
    """
    first = at - 1
    while first > max(0, at - 4) and "\udc80" <= text[first] < "\udcc0":
        first -= 1
    character = text[max(first, 0) : at][:1]
    overlooked = at - first - 1
    if overlooked + len(character.encode("utf-8", "surrogateescape")) > 4 or (overlooked and character == "\n"):
        return False, True
    return _is_word(character), is_stray(character)


def _is_word(character: str) -> bool:
    return character != "" and not is_stray(character) and is_word(character)


def is_stray(character: str) -> bool:
    """Whether it stands for a byte that is no UTF-8."""
    return "\udc80" <= character <= "\udcff"
