"""Whether two lines are versions of one: the same words but for a name in another form, or some that came or went."""

from difflib import SequenceMatcher

from handrail.edit.ladder.tokens import plain_words

_LONG = 2_000
_OTHER = 0.4
"""How much of a line may be other words."""
_MORE = 5
"""Characters that one form of a name may have more than another."""
_MISSPELT = 0.8
_DEFINING = {
    "class", "def", "defmodule", "enum", "fn", "func", "function", "impl", "interface", "macro", "mod", "module",
    "namespace", "object", "package", "proc", "record", "struct", "sub", "trait", "type", "union",
}  # fmt: skip
"""Words before the name of what a place is: by that name it is told from its twins."""


def alike(one: str, other: str) -> bool:
    """Whether two lines are versions of one."""
    ours, theirs = plain_words(one), plain_words(other)
    if max(len(ours), len(theirs)) > _LONG:
        return False
    changed = 0
    for tag, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "replace":
            defines = a > 0 and ours[a - 1] in _DEFINING
            if defines or b - a != d - c or not all(map(same_name, ours[a:b], theirs[c:d])):
                return False
            changed += b - a
        elif tag != "equal":
            changed += max(b - a, d - c)
    return changed <= max(1, _OTHER * max(len(ours), len(theirs)))


def same_name(one: str, other: str) -> bool:
    """Whether two words are forms of one name: one with a few letters more, or misspelt; numbers are not."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    if not short[0].isalpha() and short[0] != "_":
        return False
    if short in long:
        return len(long) - len(short) <= _MORE and len(short) > 1
    digits = "".join(filter(str.isdigit, short)), "".join(filter(str.isdigit, long))
    return digits[0] == digits[1] and len(short) > 4 and SequenceMatcher(None, short, long).ratio() >= _MISSPELT
