"""The signs at the start of lines, in signs or in words."""

import os
import re
import sys
from types import SimpleNamespace

import msgspec

from handrail.terminal.style import Paint, Style, can_encode, choose_paint, paint_nothing

_STYLES: dict[str, Style] = {
    "ok": "ok",
    "running": "running",
    "asks": "refused",
    "failed": "failed",
    "denied": "refused",
    "info": "dim",
}


class Glyphs(msgspec.Struct, frozen=True):
    """The signs at the start of lines, and those between facts."""

    ok: str = "✓"
    running: str = "●"
    asks: str = "!"
    failed: str = "✗"
    denied: str = "⊘"
    info: str = "·"
    says: str = "»"
    """Before words of a model that could pass for a line of handrail."""
    between: str = " · "
    minus: str = "−"
    to: str = "→"
    plain: bool = False
    width: int = 100
    """The columns of a line."""
    paint: Paint = paint_nothing

    def sign(self, name: str) -> str:
        """The sign at the start of a line, painted."""
        return self.paint(getattr(self, name), _STYLES[name])


_WORDS = Glyphs(
    ok="ok",
    running="..",
    asks="ASK",
    failed="ERR",
    denied="DENY",
    info="-",
    says="SAYS",
    between=", ",
    minus="-",
    to=" to ",
    plain=True,
)


def build_glyphs(options: SimpleNamespace) -> Glyphs:
    """Signs, or words if stderr cannot show signs or the person asked for words."""
    try:
        width = max(40, min(160, os.get_terminal_size(2).columns))
    except OSError:
        width = 100
    if not options.plain and os.environ.get("TERM") != "dumb" and can_encode(sys.stderr, "✓●✗⊘·»−→"):
        return Glyphs(width=width, paint=choose_paint(sys.stderr, os.environ))
    return msgspec.structs.replace(_WORDS, width=width)


class SpoofGuard:
    """Marks lines of a model that begin as lines of handrail do. They come in pieces."""

    def __init__(self, glyphs: Glyphs) -> None:
        signs = "".join(
            (glyphs.ok, glyphs.running, glyphs.asks, glyphs.failed, glyphs.denied, glyphs.info, glyphs.says, "?")
        )
        self._mark = f"{glyphs.says} "
        self._begins = re.compile(rf"(\A|\n)(?=[^\S\n]*[{re.escape(signs)}])")
        self._fresh = True
        """Whether the line has only blanks so far."""

    def mark_piece(self, piece: str, *, begins: bool) -> str:
        """Adds the marks. `begins`: the piece is the first of its line."""
        fresh = self._fresh or begins
        *_, last = piece.rpartition("\n")
        self._fresh = (fresh or "\n" in piece) and not last.strip()

        def mark(found: re.Match[str]) -> str:
            return found[1] + self._mark if found[1] or fresh else ""

        return self._begins.sub(mark, piece)
