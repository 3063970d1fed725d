"""The characters that a text is made of: with them known, every set of an expression is a list.

Bytes that are no UTF-8 stand in a text as lone surrogates. No set has them as members.
"""

import re
from itertools import groupby

from handrail.workspace.search.regex.characters import Test, is_word
from handrail.workspace.search.regex.reader import UnsupportedPatternError
from handrail.workspace.search.regex.tree import Characters

_ASCII = frozenset(map(chr, range(128))) - {"\r", "\n"}
NO_CHARACTER = "\udc80-\udcff"
"""What stands for a byte that is no UTF-8."""
_NEVER = "\r\n\udc80\udcff"
"""What no set has: the ends of lines, and either end of what is no character."""
_MAX_MEMBERS = 1_000_000
"""Of all sets together: some tens of megabytes."""


class Alphabet:
    """ASCII and the other characters of a text."""

    __slots__ = ("_lists", "_order", "_same", "_spelled", "everything", "held")

    def __init__(self, others: frozenset[str]) -> None:
        self.everything = _ASCII | others
        self.held = len(self.everything)
        """How many members the sets have that are kept."""
        self._order = sorted((*self.everything, *_NEVER))
        self._lists: dict[int, tuple[Test, frozenset[str]]] = {}
        self._same: dict[frozenset[str], frozenset[str]] = {self.everything: self.everything}
        self._spelled: dict[frozenset[str], str] = {}

    def members(self, characters: Characters) -> frozenset[str]:
        """The members of a set, line endings left out: a match never reaches over them."""
        if characters.whole:
            return self.everything
        # The test itself is kept beside the members, so that its identity stays its own.
        kept = self._lists.get(id(characters.test))
        if kept is None:
            found = frozenset(filter(characters.test, self.everything))
            kept = self._lists[id(characters.test)] = (characters.test, self._shared(found))
        return kept[1]

    def _shared(self, members: frozenset[str]) -> frozenset[str]:
        """The members of an equal set, if there is one."""
        known = self._same.get(members)
        if known is None:
            known = self._same[members] = members
            self.held += len(members)
            if self.held > _MAX_MEMBERS:
                raise UnsupportedPatternError("so many sets over so many characters")
        return known

    def spelled(self, members: frozenset[str]) -> str:
        """A set as Python's expressions write it."""
        if members == self.everything:
            return rf"[^\r\n{NO_CHARACTER}]"
        if len(members) == 1:
            return re.escape(next(iter(members)))
        return f"[{self._ranges(members)}]" if members else "(?!)"

    def words(self) -> str:
        """The characters that words are made of, to stand in brackets."""
        return self._ranges(self.members(_WORD))

    def _ranges(self, members: frozenset[str]) -> str:
        """A range reaches over what does not occur in the text, so there are few of them."""
        known = self._spelled.get(members)
        if known is None:
            runs = (list(run) for inside, run in groupby(self._order, members.__contains__) if inside)
            known = self._spelled[members] = "".join(_range(run[0], run[-1]) for run in runs)
        return known


_WORD = Characters(is_word)


def _range(low: str, high: str) -> str:
    return _code(low) if low == high else f"{_code(low)}-{_code(high)}"


def _code(character: str) -> str:
    return f"\\U{ord(character):08x}"
