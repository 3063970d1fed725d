"""Puts text on stdout and stderr: as it is into a pipe, with nothing hidden in it onto a terminal."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from handrail.cli.exits import INFRASTRUCTURE, Stop
from handrail.cli.files import silence


def answer(text: str) -> None:
    """Writes a text to stdout; on a terminal it ends with a newline."""
    if _is_terminal(sys.stdout) and text and not text.endswith("\n"):
        text += "\n"
    _write(sys.stdout, text)


def answer_json(data: bytes) -> bool:
    """Writes one JSON value to stdout, on a line; into a pipe always as UTF-8. Whether somebody may still read it."""
    if sys.stdout is None or _is_terminal(sys.stdout):
        _write(sys.stdout, f"{data.decode()}\n")
        return sys.stdout is not None
    return _put(sys.stdout, lambda: sys.stdout.buffer.write(data + b"\n"))


def note(text: str) -> None:
    """Writes a line to stderr."""
    _write(sys.stderr, f"{text}\n")


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows in columns, without borders; the last column is as long as it is."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join(f"{_padded(row, widths)}\n" for row in cells)


def one_line(text: str) -> str:
    """The text in one line with nothing hidden in it."""
    return visible(text).replace("\n", "\\n").replace("\t", " ")


def cut(text: str, length: int = 100) -> str:
    """The text, or the beginning of it."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def visible(text: str) -> str:
    """The text with everything that steers a terminal or shows nothing written out, in the form JSON has for it."""
    return text.translate(_VISIBLE)


def can_show(text: str) -> bool:
    """Whether stdout's encoding has these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError, AttributeError):
        return False
    return True


class _Visible(dict[int, str]):
    """Decides about a character when it is first met."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        shown = char if (char.isprintable() and char not in _BLANK) or char in _SPACES else _escaped(char)
        self[code] = shown
        return shown


_SPACES = "\n\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Not printable for Python, and yet harmless."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0" + "".join(map(chr, range(0xE0100, 0xE01F0))))
"""Printable for Python, and yet nothing is seen of them."""
_VISIBLE = _Visible()


def _escaped(char: str) -> str:
    pairs = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[at]:02x}{pairs[at + 1]:02x}" for at in range(0, len(pairs), 2))


def _padded(row: list[str], widths: list[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return  # closed by whoever started us
    shown = visible(text) if _is_terminal(stream) else text
    try:
        _put(stream, lambda: stream.write(shown))
    except UnicodeEncodeError:
        _put(stream, lambda: stream.write(shown.encode(stream.encoding, "backslashreplace").decode(stream.encoding)))


def _put(stream: TextIO, write: Callable[[], object]) -> bool:
    try:
        write()
        stream.flush()
    except BrokenPipeError:
        silence(stream)
        return False
    except OSError as error:
        silence(stream)
        raise Stop(f"the output cannot be written: {error.strerror}", INFRASTRUCTURE) from None
    return True
