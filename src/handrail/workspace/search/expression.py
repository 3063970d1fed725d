"""Regular expressions with Rust's meaning, line by line; what Python cannot be sure of is left to ripgrep."""

from collections.abc import Callable, Iterator

from handrail.protocol.error import ToolError
from handrail.workspace.search.complaints import broken_expression, lines_only
from handrail.workspace.search.engine import Without
from handrail.workspace.search.regex.characters import is_doubtful
from handrail.workspace.search.regex.parser import parsed
from handrail.workspace.search.regex.reader import BeyondError, BrokenError, LineBreakError
from handrail.workspace.search.regex.searcher import Matched, Searcher

_ALPHABETS_KEPT = 64
_MEMBERS_KEPT = 2_000_000
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
            self._tree, self._asks_tables = parsed(pattern, case_sensitive=case_sensitive)
            self._in_ascii = Searcher(self._tree, frozenset())
        except BrokenError as error:
            where = f" (character {error.place})" if 1 <= error.place <= len(pattern) else ""
            raise broken_expression(f"{error.reason}{where}") from None
        except LineBreakError:
            raise lines_only() from None
        except BeyondError as error:
            raise needs_ripgrep(f"pattern has {error}", without) from None
        self._others: dict[frozenset[str], Searcher] = {}

    def lines(self, text: str, stop: Callable[[], bool] = lambda: False) -> Iterator[Matched]:
        """The lines of a text that match. Bytes that are no UTF-8 stand in it as lone surrogates."""
        try:
            yield from self._for(text).lines(text, stop)
        except BeyondError as error:
            raise needs_ripgrep(f"the search meets {error}", self._without) from None

    def _for(self, text: str) -> Searcher:
        if text.isascii():
            return self._in_ascii
        others = frozenset(c for c in set(text) if not c.isascii() and not "\udc80" <= c <= "\udcff")
        found = self._others.get(others)
        if found is None:
            if self._asks_tables and any(map(is_doubtful, others)):
                raise BeyondError("characters that are younger than Python's tables")
            if len(self._others) >= _ALPHABETS_KEPT or self._held() > _MEMBERS_KEPT:
                self._others.clear()
            found = self._others[others] = Searcher(self._tree, others)
        return found

    def _held(self) -> int:
        return sum(searcher.held for searcher in self._others.values())


def needs_ripgrep(reason: str, without: Without) -> ToolError:
    """The refusal where Python might answer differently."""
    words = f"{reason[0].upper()}{reason[1:]}"
    return ToolError("UNAVAILABLE", f"{words}; that needs ripgrep (rg), {_REASONS[without]}.")
