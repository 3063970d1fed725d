"""The characters that a text is made of: with them known, every set of an expression is a list.

Bytes that are no UTF-8 stand in a text as lone surrogates. No set has them as members.
"""

import re
from functools import lru_cache

from handrail.workspace.search.regex.characters import is_word
from handrail.workspace.search.regex.tree import Characters

_ASCII = frozenset(map(chr, range(128))) - {"\r", "\n"}
NO_CHARACTER = "\udc80-\udcff"
"""What stands for a byte that is no UTF-8."""


class Alphabet:
    """ASCII and the other characters of a text."""

    __slots__ = ("_lists", "everything")

    def __init__(self, others: frozenset[str]) -> None:
        self.everything = _ASCII | others
        self._lists: dict[int, tuple[Characters, frozenset[str]]] = {}

    def members(self, characters: Characters) -> frozenset[str]:
        """The members of a set, line endings left out: a match never reaches over them."""
        if characters.whole:
            return self.everything
        # The set itself is kept beside its members, so that its identity stays its own.
        kept = self._lists.get(id(characters))
        if kept is None:
            found = frozenset(character for character in self.everything if characters.test(character))
            kept = self._lists[id(characters)] = (characters, found)
        return kept[1]

    def spelled(self, members: frozenset[str]) -> str:
        """A set as Python's expressions write it."""
        if members == self.everything:
            return rf"[^\r\n{NO_CHARACTER}]"
        if len(members) == 1:
            return re.escape(next(iter(members)))
        return f"[{_ranges(members)}]" if members else "(?!)"

    def words(self) -> str:
        """The characters that words are made of, to stand in brackets."""
        return _ranges(self.members(_WORD))


_WORD = Characters(is_word)


@lru_cache(maxsize=256)
def _ranges(members: frozenset[str]) -> str:
    codes = sorted(map(ord, members))
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in runs)


def _code(code: int) -> str:
    return f"\\U{code:08x}"
