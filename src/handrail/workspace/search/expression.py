"""Regular expressions with Rust's meaning, line by line; what Python cannot be sure of is left to ripgrep."""

from collections.abc import Callable, Iterator

from handrail.protocol.errors import ToolError
from handrail.workspace.search.engine import Without
from handrail.workspace.search.regex.characters import is_doubtful
from handrail.workspace.search.regex.parser import parse_pattern
from handrail.workspace.search.regex.reader import LineBreakError, PatternSyntaxError, UnsupportedPatternError
from handrail.workspace.search.regex.searcher import MatchedLine, Searcher
from handrail.workspace.search.ripgrep_output import build_line_break_error, build_pattern_error

_MAX_KEPT_ALPHABETS = 64
_MAX_KEPT_MEMBERS = 2_000_000
"""Characters in all sets of all alphabets that are kept: some tens of megabytes."""
_REASONS: dict[Without, str] = {
    "not installed": "which is not installed here",
    "switched off": "which the setting search.engine switches off",
}


class Expression:
    """One expression, ready for any text."""

    def __init__(self, pattern: str, *, case_sensitive: bool = True, without: Without = "not installed") -> None:
        self._without: Without = without
        try:
            self._tree, self._asks_tables = parse_pattern(pattern, case_sensitive=case_sensitive)
            self._in_ascii = Searcher(self._tree, frozenset())
        except PatternSyntaxError as error:
            where = f" (character {error.place})" if 1 <= error.place <= len(pattern) else ""
            raise build_pattern_error(f"{error.reason}{where}") from None
        except LineBreakError:
            raise build_line_break_error() from None
        except UnsupportedPatternError as error:
            raise build_ripgrep_error(f"pattern has {error}", without) from None
        self._others: dict[frozenset[str], Searcher] = {}

    def lines(self, text: str, stop: Callable[[], bool] = lambda: False) -> Iterator[MatchedLine]:
        """The lines of a text that match. Bytes that are no UTF-8 stand in it as lone surrogates."""
        try:
            yield from self._for(text).lines(text, stop)
        except UnsupportedPatternError as error:
            raise build_ripgrep_error(f"the search meets {error}", self._without) from None

    def _for(self, text: str) -> Searcher:
        if text.isascii():
            return self._in_ascii
        others = frozenset(c for c in set(text) if not c.isascii() and not "\udc80" <= c <= "\udcff")
        found = self._others.get(others)
        if found is None:
            if self._asks_tables and any(map(is_doubtful, others)):
                raise UnsupportedPatternError("characters that are younger than Python's tables")
            if len(self._others) >= _MAX_KEPT_ALPHABETS or self._held() > _MAX_KEPT_MEMBERS:
                self._others.clear()
            found = self._others[others] = Searcher(self._tree, others)
        return found

    def _held(self) -> int:
        return sum(searcher.held for searcher in self._others.values())


def build_ripgrep_error(reason: str, without: Without) -> ToolError:
    """The refusal where Python might answer differently."""
    words = f"{reason[0].upper()}{reason[1:]}"
    return ToolError("UNAVAILABLE", f"{words}; that needs ripgrep (rg), {_REASONS[without]}.")
