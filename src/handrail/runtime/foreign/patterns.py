"""Regular expressions of strangers: only those are tried that cannot take long.

Python's engine tries every way to match and cannot be stopped. So a pattern is read first: of single characters and
sets, each repeated at most once, without repeated groups, one can say how many ways there are. Where that are too many
for the text, or where the pattern is of another kind, nobody tries: its server checks its arguments too.
"""

import re
from functools import lru_cache

_MOST_WAYS = 2_000_000
_LONGEST = 500
_PIECE = re.compile(
    r"(?P<atom>\\[dDwWsStnrfv.\-/\\^$*+?()\[\]{}|]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    r"|\[\^?(?:[^\\\[\]&~|-]|\\[dDwWsStnrfv.\-/\\^$*+?()\[\]{}|]|-(?!-))+\]|[^\\\[\](){}*+?|^$])"
    r"(?P<repeat>[*+?]\??|\{\d{1,4}(?:,\d{0,4})?\}\??)?"
    r"|(?P<anchor>[\^$])(?![*+?{])|(?P<open>\((?:\?:)?)(?!\?)|(?P<close>\))(?![*+?{])|(?P<either>\|)"
)
_SPACE = re.compile(r"\\[sS]")


class Pattern:
    """One that can be read."""

    def __init__(self, expression: re.Pattern[str], choices: int) -> None:
        self._expression, self._choices = expression, choices
        self._ascii_only = _SPACE.search(expression.pattern) is not None

    def matches(self, text: str) -> bool | None:
        """Whether it is found in the text; None where that might take long, or where languages differ about it."""
        if (len(text) + 1) ** self._choices > _MOST_WAYS or (self._ascii_only and not text.isascii()):
            return None
        return self._expression.search(text) is not None


@lru_cache(512)
def pattern(source: str) -> Pattern | None:
    """The pattern made ready; None for one that is not to be tried."""
    if len(source) > _LONGEST:
        return None
    at, depth, choices = 0, 0, 0 if source.startswith("^") else 1
    while at < len(source):
        piece = _PIECE.match(source, at)
        if piece is None:
            return None
        at = piece.end()
        choices += bool(piece["repeat"] or piece["either"])
        depth += bool(piece["open"]) - bool(piece["close"])
    if depth:
        return None
    try:
        return Pattern(re.compile(source, re.ASCII), choices)
    except (re.error, OverflowError, RecursionError):
        return None
