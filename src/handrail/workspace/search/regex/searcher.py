"""An expression for texts that are made of certain characters: finds the lines that match, whatever it takes."""

import re
from collections.abc import Callable, Iterator

import msgspec

from handrail.workspace.search.regex.alphabet import NO_CHARACTER, Alphabet
from handrail.workspace.search.regex.effort import Limit
from handrail.workspace.search.regex.literals import find_required_text
from handrail.workspace.search.regex.patience import TimeBudget
from handrail.workspace.search.regex.places import is_stray
from handrail.workspace.search.regex.reader import UnsupportedPatternError
from handrail.workspace.search.regex.threads import NfaProgram, StepBudget, StoppedError
from handrail.workspace.search.regex.translate import translate_pattern
from handrail.workspace.search.regex.tree import Node, can_be_empty, count_sets, has_word_edges

MAX_SPANS = 450_000
"""Matches of one line: a line with more of them is passed over in any case (see `gathering`)."""
_MAX_SOON_STEPS = 5_000_000
_MAX_CHAR_SET_PAIRS = 10_000_000
"""Characters times the sets that they may be in: about a second."""
_MAX_PATTERN_CHARS = 1_000_000
_STRAY = re.compile(f"[{NO_CHARACTER}]")

Spans = list[tuple[int, int]]


class MatchedLine(msgspec.Struct, frozen=True):
    """A line of a text that matches; all in characters."""

    start: int
    end: int
    """Where its newline is, or the text's end."""
    spans: Spans
    """In the line. None of them can be at the end of a text that no newline ends: ripgrep does not name it."""


class Searcher:
    """The expression for texts made of certain characters."""

    def __init__(self, tree: Node, others: frozenset[str], patience: Callable[[], TimeBudget] = TimeBudget) -> None:
        alphabet = Alphabet(others)
        self._new_patience, self._patience = patience, patience()
        if count_sets(tree) * len(alphabet.everything) > _MAX_CHAR_SET_PAIRS:
            raise UnsupportedPatternError("so many sets over so many characters")
        self._tree, self._alphabet = tree, alphabet
        self._limit = Limit(tree, alphabet)
        self._required = find_required_text(tree, alphabet)
        self._pattern = None if self._limit.never else _compiled(tree, alphabet)
        self._threads: NfaProgram | None = None
        self._may_be_empty = can_be_empty(tree)
        self._asks_words = has_word_edges(tree)
        self._empty_anywhere = can_be_empty(tree, places=False)

    @property
    def held(self) -> int:
        """How many characters its sets have, all together."""
        return self._alphabet.held

    def lines(self, text: str, stop: Callable[[], bool]) -> Iterator[MatchedLine]:
        """The lines that match; asks every now and then, also within a long line, whether to stop."""
        if self._required not in text:
            return iter(())
        self._patience = self._new_patience()
        if self._pattern is None or self._may_be_empty or (self._asks_words and _STRAY.search(text)):
            return self._line_by_line(text, 0, len(text), stop)
        return self._at_once(text, self._pattern, stop)

    def _at_once(self, text: str, pattern: re.Pattern[str], stop: Callable[[], bool]) -> Iterator[MatchedLine]:
        """Every match has characters: so lines need not be taken apart before there is one."""
        for start, end, cheap in self._limit.stretches(text):
            if stop():
                return
            if not cheap or not self._patience.lasts:
                yield from self._line_by_line(text, start, end, stop)
                continue
            self._patience.begin()
            matches = [found.span() for found in pattern.finditer(text, start, end)]
            self._patience.end(end - start)
            yield from _grouped(text, iter(matches))

    def _line_by_line(self, text: str, start: int, until: int, stop: Callable[[], bool]) -> Iterator[MatchedLine]:
        while start < until and not stop():
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            self._patience.begin()
            try:
                spans = self._spans(text, start, end, stop) if text.find(self._required, start, end) >= 0 else None
            except StoppedError:
                return
            self._patience.end(end - start)
            if spans is not None:
                yield MatchedLine(start, end, spans)
            start = end + 1

    def _spans(self, text: str, start: int, end: int, stopped: Callable[[], bool]) -> Spans | None:
        """The matches in one line; None when it has none.

        A match may be empty, but not where the one before it ended; the next one is looked for a byte further on.
        """
        if self._may_be_empty and self._asks_words and _STRAY.search(text, start, end):
            # Which of them ripgrep finds depends on how it searches.
            raise UnsupportedPatternError("empty matches at the edge of a word, beside bytes that are no text")
        terminated = end < len(text)
        stop = end - 1 if terminated and end > start and text[end - 1] == "\r" else end
        search = self._searcher(text, start, end, stopped)
        spans: Spans | None = None
        position, last = start, -1
        while position <= stop and (found := search(text, position, stop)) is not None:
            spans = [] if spans is None else spans
            if found[0] < found[1] or (found[0] != last and (terminated or found[0] < end)):
                spans.append((found[0] - start, found[1] - start))
                if len(spans) >= MAX_SPANS:
                    return spans
            last = found[1]
            position = last if found[0] < last else self._after_empty(text, last)
        if spans is None and stop < end:
            # ripgrep finds a match between \r and \n, but names none in the line without its end.
            found = search(text, end, end + 1)
            return [] if found == (end, end) else None
        return spans

    def _after_empty(self, text: str, at: int) -> int:
        """Where to go on behind an empty match. Between the bytes of a character there are only empty ones again."""
        if self._empty_anywhere and not text[at : at + 1].isascii() and not is_stray(text[at]):
            raise UnsupportedPatternError("empty matches between the bytes of a character that is not ASCII")
        return at + 1

    def _searcher(
        self, text: str, start: int, end: int, stopped: Callable[[], bool]
    ) -> Callable[[str, int, int], tuple[int, int] | None]:
        strays = self._asks_words and _STRAY.search(text, start, end)
        allowed = not strays and self._limit.allows(text, start, end)
        if self._pattern is not None and allowed and (self._patience.lasts or not self._soon_followed(end - start)):
            search = self._pattern.search
            return lambda text, position, end: _span(search(text, position, end))
        follow, work = self._following().search, StepBudget(stopped)
        return lambda text, position, end: follow(text, position, end, work)

    def _following(self) -> NfaProgram:
        if self._threads is None:
            self._threads = NfaProgram(self._tree, self._alphabet)
        return self._threads

    def _soon_followed(self, characters: int) -> bool:
        """Whether all ways can be followed at once over a line: what `re` can answer is not refused."""
        try:
            return self._following().size * characters <= _MAX_SOON_STEPS
        except UnsupportedPatternError:
            return False


def _compiled(tree: Node, alphabet: Alphabet) -> re.Pattern[str]:
    words = translate_pattern(tree, alphabet)
    if len(words) > _MAX_PATTERN_CHARS:
        raise UnsupportedPatternError("so large an expression")
    return re.compile(words)


def _span(match: re.Match[str] | None) -> tuple[int, int] | None:
    return None if match is None else match.span()


def _grouped(text: str, matches: Iterator[tuple[int, int]]) -> Iterator[MatchedLine]:
    """Matches, each with characters, by their lines."""
    spans: Spans = []
    start, end = 0, -1
    for first, last in matches:
        if first > end:
            if spans:
                yield MatchedLine(start, end, spans)
            start, end = text.rfind("\n", 0, first) + 1, text.find("\n", last)
            end = len(text) if end < 0 else end
            spans = []
        if len(spans) < MAX_SPANS:
            spans.append((first - start, last - start))
    if spans:
        yield MatchedLine(start, end, spans)
