"""Rust's regular expressions in Python's `re`, for the subset with the same matches in bounded time."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Literal

import msgspec

from handrail.protocol.errors import ToolError
from handrail.workspace.search.engine import Stop
from handrail.workspace.search.regex_syntax import (
    END,
    LINE_START,
    LineBreakError,
    Node,
    PatternParser,
    PatternSyntaxError,
    Reach,
    UnsupportedPatternError,
)
from handrail.workspace.search.ripgrep import build_line_break_error, build_pattern_error

MAX_SPANS = 450_000
"""Matches of one line. A line with more of them is too long to be shown."""
_CHUNK_CHARS = 1 << 14
_MAX_STEPS = 1_000_000_000
"""Steps that `re` may take between two questions whether to stop: about a second at worst."""
_MAX_STEPS_PER_START = 1e12
"""Steps over 64 characters that only nested ambiguous repetitions take."""

Spans = list[tuple[int, int]]


class MatchedLine(msgspec.Struct, frozen=True):
    """A line of a text that matches. All places are in characters."""

    start: int
    end: int
    """The place of its newline, or the end of the text."""
    spans: Spans
    """Matches in the line. ripgrep names no empty match at the end of a text without a newline."""


Without = Literal["not installed", "disabled"]
"""Why ripgrep does not search."""


def build_ripgrep_error(reason: str, without: Without) -> ToolError:
    """The refusal of a search that Python might answer differently than ripgrep."""
    remedies: dict[Without, str] = {
        "not installed": "which is not installed here. Install the package ripgrep (apt, dnf, brew or pip)",
        "disabled": "which the setting search.engine disables. Set it to auto",
    }
    return ToolError("UNAVAILABLE", f"{reason[0].upper()}{reason[1:]}; that needs ripgrep (rg), {remedies[without]}.")


class Expression:
    def __init__(self, pattern: str, *, case_sensitive: bool = True, without: Without = "not installed") -> None:
        self._without: Without = without
        parser = PatternParser(pattern, any_case=not case_sensitive)
        try:
            self._tree = parser.parse()
            self._folds_case = parser.folds_case
            self._cost = _CostModel(self._tree, self._fold)
        except PatternSyntaxError as error:
            place = f" (character {error.place})" if 1 <= error.place <= len(pattern) else ""
            raise build_pattern_error(f"{error}{place}") from None
        except LineBreakError:
            raise build_line_break_error() from None
        except UnsupportedPatternError as error:
            raise build_ripgrep_error(f"pattern has {error}", without) from None
        self._asks_tables, self._asks_edges = parser.asks_tables, parser.asks_edges
        self._required = max(self._fold(self._tree.literals).split("\n"), key=len)
        self._expression = re.compile(self._tree.translation)

    def lines(self, text: str, stop: Stop = lambda: False) -> Iterator[MatchedLine]:
        """Yield the lines that match. Bytes that are not UTF-8 stand in the text as lone surrogates."""
        if not self._has_required(text):
            return
        try:
            if not text.isascii():
                self._refuse_doubtful(text)
            for start, end in self._list_candidates(text, stop):
                spans = self._find_spans(text, start, end)
                if spans is not None:
                    yield MatchedLine(start, end, spans)
        except UnsupportedPatternError as error:
            raise build_ripgrep_error(f"the search meets {error}", self._without) from None

    def _refuse_doubtful(self, text: str) -> None:
        """Refuse lines in which ripgrep may see the edges of words, or their characters, in another way."""
        doubtful = "".join(filter(self._is_doubtful, set(text)))
        end = -1
        for match in re.finditer(f"[{re.escape(doubtful)}]", text) if doubtful else ():
            if match.start() > end:
                start, end = _find_line(text, match.start())
                if self._has_required(text[start:end]):
                    raise UnsupportedPatternError(r"characters that not all versions of \w, \d and \b agree on")

    def _has_required(self, text: str) -> bool:
        """Whether a text holds the characters that every match holds."""
        return self._required in self._fold(text)

    def _fold(self, text: str) -> str:
        return text.casefold() if self._folds_case else text

    def _is_doubtful(self, character: str) -> bool:
        if character.isascii():
            return False
        if not _is_stray(character):
            return self._asks_tables and _has_doubtful_class(character)
        # To find the edge of a word, Rust goes back over bytes that could continue a character.
        return self._asks_edges and (character < "\udcc0" or self._tree.can_be_empty)

    def _list_candidates(self, text: str, stop: Stop) -> Iterator[tuple[int, int]]:
        """Yield where the lines begin and end that may match."""
        start = 0
        while start < len(text):
            chunk = text.rfind("\n", start, start + _CHUNK_CHARS) + 1 or _find_line(text, start)[1] + 1
            is_cheap = self._cost.allows_lines(text, start, chunk)
            while start < chunk and not stop() and (place := self._find_candidate(text, start, chunk, is_cheap)) >= 0:
                start, end = _find_line(text, place)
                yield start, end
                start = end + 1
            if stop():
                return
            start = chunk

    def _find_candidate(self, text: str, start: int, end: int, is_cheap: bool) -> int:
        """Return a place in the next line that may match, or -1."""
        if is_cheap and not self._tree.can_be_empty:
            match = self._expression.search(text, start, end)
            return -1 if match is None else match.start()
        return start if self._folds_case else text.find(self._required, start, end)

    def _find_spans(self, text: str, start: int, end: int) -> Spans | None:
        """Return the matches in one line, or None.

        A match may be empty, but not where the one before it ended. The next one begins at least a byte later.
        """
        if not self._cost.allows_line(text, start, end):
            if not self._has_required(text[start:end]):
                return None
            raise UnsupportedPatternError("a line that is too long for this pattern")
        is_terminated = end < len(text)
        stop = end - 1 if is_terminated and end > start and text[end - 1] == "\r" else end
        spans: Spans | None = None
        position, last = start, -1
        while position <= stop and (match := self._expression.search(text, position, stop)) is not None:
            first, previous, last = match.start(), last, match.end()
            spans = [] if spans is None else spans
            if first < last or (first != previous and (is_terminated or first < end)):
                spans.append((first - start, last - start))
                if len(spans) >= MAX_SPANS:
                    return spans
            position = last if first < last else self._skip_empty(text, last)
        if spans is None and stop < end:
            # ripgrep finds a match between \r and \n, but names none in the line without its end.
            match = self._expression.search(text, end, end + 1)
            return [] if match is not None and match.span() == (end, end) else None
        return spans

    def _skip_empty(self, text: str, place: int) -> int:
        """Return where to continue after an empty match. Between the bytes of one character come empty ones again."""
        if self._tree.is_empty_anywhere and not text[place : place + 1].isascii() and not _is_stray(text[place]):
            raise UnsupportedPatternError("empty matches between the bytes of a character that is not ASCII")
        return place + 1


def _find_line(text: str, place: int) -> tuple[int, int]:
    """Return where the line of a place begins, and the place of its newline."""
    end = text.find("\n", place)
    return text.rfind("\n", 0, place) + 1, len(text) if end < 0 else end


_LETTERS = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd"})
_DISPUTED = frozenset({"Mn", "Mc", "Me", "Nl", "No", "Pc"})
_EMOJI = re.compile("[\U0001f300-\U0001faff]")
_SPECIAL_WORD = re.compile("[\u200c\u200d\u24b6-\u24e9\U0001f130-\U0001f189]")
r"""Joiners, letters in circles and squares: Rust's \w has them, though they are no letters by their category."""


@lru_cache(maxsize=4096)
def _has_doubtful_class(character: str) -> bool:
    r"""Whether Python and ripgrep may disagree on \w or \d. Both know the letters of Unicode 3.2."""
    category = unicodedata.category(character)
    if category in _LETTERS:
        return unicodedata.ucd_3_2_0.category(character) != category
    if category == "Cn":
        return not _EMOJI.match(character)
    return category in _DISPUTED or _SPECIAL_WORD.match(character) is not None


def _is_stray(character: str) -> bool:
    """Whether a character stands for a byte that is not UTF-8."""
    return "\udc80" <= character <= "\udcff"


class _CostModel:
    """Bounds the steps that `re` takes, which tries one way after the other."""

    def __init__(self, tree: Node, fold: Callable[[str], str]) -> None:
        self._tree = tree
        self._fold = fold
        self._prefix = fold(tree.literals).partition("\n")[0]
        self._is_anchored = tree.translation.startswith(LINE_START.translation)
        self._bound = cache(self._count_steps_within)
        if self._bound(64) > _MAX_STEPS_PER_START:
            raise UnsupportedPatternError("repetitions inside each other that can match one text in many ways")

    def allows_lines(self, text: str, start: int, end: int) -> bool:
        """Whether lines can be searched all at once."""
        longest = max(map(len, text[start:end].split("\n")))
        return (end - start) * self._bound(1 << longest.bit_length()) <= _MAX_STEPS

    def allows_line(self, text: str, start: int, end: int) -> bool:
        """Whether one line can be searched, given how far repetitions can go in it."""
        length = end - start
        if length * self._bound(1 << length.bit_length()) <= _MAX_STEPS:
            return True

        def measure(run: re.Pattern[str]) -> int:
            return max((match.end() - match.start() for match in run.finditer(text, start, end)), default=0)

        return length + self._count_starts(text, start, end) * self._count_steps(measure) <= _MAX_STEPS

    def _count_starts(self, text: str, start: int, end: int) -> int:
        if self._is_anchored:
            return 1 + text.count("\r", start, end)
        # Starts that overlap are not counted one by one.
        overlap = len(self._prefix) if len(set(self._prefix)) < len(self._prefix) else 1
        return self._fold(text[start:end]).count(self._prefix) * overlap if self._prefix else end - start

    def _count_steps_within(self, length: int) -> float:
        return self._count_steps(lambda _: length)

    def _count_steps(self, reach: Reach) -> float:
        """Bound the steps from one start."""
        return sum(self._tree.cost(END, reach))
