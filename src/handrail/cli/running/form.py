"""How the lines of a run look: signs where there are such, words where not."""

import os
import re
import sys
from argparse import Namespace

import msgspec


class Glyphs(msgspec.Struct, frozen=True):
    """The signs that begin lines, and what stands between facts."""

    ok: str = "✓"
    running: str = "●"
    asks: str = "!"
    failed: str = "✗"
    denied: str = "⊘"
    info: str = "·"
    says: str = "»"
    """Before what a model shows or says where it could pass for a line of ours."""
    between: str = " · "
    minus: str = "−"
    to: str = "→"
    plain: bool = False
    width: int = 100
    """Of the terminal, or as if it were one."""


class SpoofGuard:
    """Marks lines of a model's that begin as ours do. They come in pieces."""

    def __init__(self, form: Glyphs) -> None:
        signs = "".join((form.ok, form.running, form.asks, form.failed, form.denied, form.info, form.says, "?"))
        self._mark = f"{form.says} "
        self._begins = re.compile(rf"(\A|\n)(?=[^\S\n]*[{re.escape(signs)}])")
        self._fresh = True
        """Whether nothing but blanks is in the line so far."""

    def mark_piece(self, piece: str, *, begins: bool) -> str:
        """The piece with its marks. `begins`: it is the first of its line."""
        fresh = self._fresh or begins
        *_, last = piece.rpartition("\n")
        self._fresh = (fresh or "\n" in piece) and not last.strip()

        def mark(found: re.Match[str]) -> str:
            return found[1] + self._mark if found[1] or fresh else ""

        return self._begins.sub(mark, piece)


def build_glyphs(options: Namespace) -> Glyphs:
    """Signs if stderr has them and nobody asked for words."""
    signs = "✓●✗⊘·»−→"
    plain = options.plain or os.environ.get("TERM") == "dumb" or not _has(signs)
    if not plain:
        return Glyphs(width=_width())
    words = {"ok": "ok", "running": "..", "asks": "ASK", "failed": "ERR", "denied": "DENY", "info": "-", "says": "SAYS"}
    return Glyphs(**words, between=", ", minus="-", to=" to ", plain=True, width=_width())


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
