"""Whether two lines are versions of one: the same words but for a name in another form, or some that came or went."""

from collections.abc import Callable

from handrail.edit.ladder.sequences import diff_sequences
from handrail.edit.ladder.tokens import split_plain_words

_OTHER = 0.4
"""How much of a line may be other words."""
_MAX_EXTRA_CHARS = 5
"""Characters that one form of a name may have more than another."""
_TURNING = {
    "!",
    "-",
    "\\",
    "not",
    "no",
    "await",
    "async",
    "static",
    "const",
    "mut",
    "unsafe",
    "never",
    "is",
    "true",
    "false",
}
"""Words that turn a line into another one that differs in nothing else: a twin, not an older version."""
_DEFINING = {
    "class", "def", "defmodule", "enum", "fn", "func", "function", "impl", "interface", "macro", "mod", "module",
    "namespace", "object", "package", "proc", "record", "struct", "sub", "trait", "type", "union",
}  # fmt: skip
"""Words before the name of what a place is: by that name it is told from its twins."""


def is_line_variant(one: str, other: str, is_said: Callable[[str], bool]) -> bool:
    """Whether two lines are versions of one. A word that the text still has somewhere is not an older one."""
    ours, theirs = split_plain_words(one), split_plain_words(other)
    changed = 0
    for a, b, c, d in diff_sequences(ours, theirs):
        gone, come = ours[a:b], theirs[c:d]
        if gone and come:
            defines = a > 0 and ours[a - 1] in _DEFINING
            if defines or len(gone) != len(come) or not all(map(is_name_variant, gone, come)):
                return False
            if any(map(is_said, gone)):
                return False
        elif _TURNING.intersection(gone + come):
            return False
        changed += max(len(gone), len(come))
    return changed <= max(1, _OTHER * max(len(ours), len(theirs)))


def is_name_variant(one: str, other: str) -> bool:
    """Whether two words are forms of one name: in other letters, with a few more at the end, or with a word before it.

    Numbers are not, nor `unlock` and `lock`.
    """
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    if not (short[0].isalpha() or short[0] == "_") or len(short) < 2 or len(long) - len(short) > _MAX_EXTRA_CHARS:
        return False
    return long.startswith(short) or long.endswith(f"_{short}")
