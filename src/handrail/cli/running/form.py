"""How the lines of a run look: signs where there are such, words where not."""

import os
import sys
from argparse import Namespace

import msgspec


class Form(msgspec.Struct, frozen=True):
    """The signs that begin lines, and what stands between facts."""

    ok: str = "✓"
    running: str = "●"
    asks: str = "!"
    failed: str = "✗"
    denied: str = "⊘"
    info: str = "·"
    between: str = " · "
    minus: str = "−"
    to: str = "→"
    plain: bool = False
    width: int = 100
    """Of the terminal, or as if it were one."""


def form_of(options: Namespace) -> Form:
    """Signs if stderr has them and nobody asked for words."""
    signs = "✓●✗⊘·−→"
    plain = options.plain or os.environ.get("TERM") == "dumb" or not _has(signs)
    if not plain:
        return Form(width=_width())
    words = {"ok": "ok", "running": "..", "asks": "ASK", "failed": "ERR", "denied": "DENY", "info": "-"}
    return Form(**words, between=", ", minus="-", to=" to ", plain=True, width=_width())


def _has(signs: str) -> bool:
    try:
        signs.encode(getattr(sys.stderr, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _width() -> int:
    try:
        return max(40, min(160, os.get_terminal_size(2).columns))
    except OSError:
        return 100
