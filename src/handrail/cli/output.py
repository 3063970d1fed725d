"""Writes to stdout and stderr."""

import os
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TextIO

from handrail.cli.exits import INFRASTRUCTURE, CommandFailed
from handrail.cli.files import silence
from handrail.protocol.text import escape_control, measure_width, pad, to_one_line, truncate

# § [cli.output] Puts text on stdout and stderr: as it is into a pipe, with nothing hidden in it onto a terminal.

_COLOURS = {"+": "32", "-": "31", "@": "36"}
_HEADING = "1"
_hidden: list[bool] = []
"""With something in it, notes are not written."""


def print_out(text: str) -> None:
    """Writes a text to stdout; on a terminal it ends with a newline."""
    if _is_terminal(sys.stdout) and text and not text.endswith("\n"):
        text += "\n"
    _write(sys.stdout, text)


def write_out(text: str) -> None:
    """Writes a part of a text to stdout, at once and as it is; more of it may come."""
    _write(sys.stdout, text)


def print_diff(text: str) -> None:
    """Writes a unified difference to stdout; in colour on a terminal, where + and - say the same."""
    if not _is_terminal(sys.stdout) or not _takes_colour():
        print_out(text)
        return
    for line in text.splitlines(keepends=True):
        colour = _COLOURS.get(line[:1]) if not line.startswith(("---", "+++")) else _HEADING
        shown = escape_control(line.rstrip("\n"))
        _put(sys.stdout, lambda shown=shown, colour=colour: sys.stdout.write(_coloured(shown, colour)))


def print_json(data: bytes) -> bool:
    """Writes one JSON value to stdout, on a line; into a pipe always as UTF-8. Whether somebody may still read it."""
    if sys.stdout is None or _is_terminal(sys.stdout):
        _write(sys.stdout, f"{data.decode()}\n")
        return sys.stdout is not None
    return _put(sys.stdout, lambda: sys.stdout.buffer.write(data + b"\n"))


def print_json_pieces(pieces: Iterable[bytes]) -> None:
    """The same for a value that comes in pieces: no more than one of them is held."""
    if sys.stdout is None or _is_terminal(sys.stdout):
        for one in pieces:
            _write(sys.stdout, one.decode())
    else:
        _put(sys.stdout, lambda: sys.stdout.buffer.writelines(pieces))


def print_note(text: str) -> None:
    """Writes a line to stderr that nobody needs: what happened, what to type next. With -q it is left out."""
    if not _hidden:
        _write(sys.stderr, f"{text}\n")


def warn(text: str) -> None:
    """Writes a line to stderr that somebody needs, also with -q: a warning, an error, what waits for them."""
    _write(sys.stderr, f"{text}\n")


@contextmanager
def hide_notes(hidden: bool) -> Generator[None]:
    """No notes while this is open, in whatever thread; or notes, in the midst of a command that has none."""
    before, _hidden[:] = _hidden[:], [True] if hidden else []
    try:
        yield
    finally:
        _hidden[:] = before


def render_table(rows: Iterable[Sequence[str]]) -> str:
    """Rows in columns, without borders; the last column is as long as it is."""

    lines = [[to_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(measure_width, column)) for column in zip(*lines, strict=True)]
    return "".join(f"{'  '.join(map(pad, row, widths)).rstrip()}\n" for row in lines)


def can_show(text: str) -> bool:
    """Whether stdout's encoding has these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError, AttributeError):
        return False
    return True


def _takes_colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") not in {"", "dumb"}


def _coloured(line: str, colour: str | None) -> str:
    return f"\x1b[{colour}m{line}\x1b[0m\n" if colour else f"{line}\n"


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return  # closed by whoever started us
    shown = escape_control(text) if _is_terminal(stream) else text
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
        raise CommandFailed(f"the output cannot be written: {error.strerror}", INFRASTRUCTURE) from None
    return True


# § [cli.patience] Says what it waits for, to a person at a terminal, where that takes longer than they would wait
# § in silence.

_PATIENCE_SECONDS = 1.0


@contextmanager
def print_slow_notice(options: Namespace, what: str) -> Generator[None]:
    """While this is open: one line, after a second."""
    if options.json or options.quiet or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    told = f"waiting for {truncate(to_one_line(what), 100)} … Ctrl-C ends it"
    timer = threading.Timer(_PATIENCE_SECONDS, print_note, (told,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # else its line could come into the middle of a question
