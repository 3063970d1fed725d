"""Output of the command line: as it is into a pipe, without control characters onto a terminal."""

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TextIO

from handrail.cli.exits import INFRASTRUCTURE, CommandFailed
from handrail.protocol.text import escape_control, measure_width, pad, to_one_line, truncate

_COLOURS = {"+": "32", "-": "31", "@": "36"}
_HEADING = "1"
_PATIENCE_SECONDS = 1.0
_hidden: list[bool] = []
"""Notes are hidden while it has an element."""


def print_out(text: str) -> None:
    """Writes a text to stdout. On a terminal, adds a missing newline."""
    if _is_terminal(sys.stdout) and text and not text.endswith("\n"):
        text += "\n"
    _write(sys.stdout, text)


def write_out(text: str) -> None:
    """Writes a part of a text to stdout."""
    _write(sys.stdout, text)


def print_diff(text: str) -> None:
    """Writes a unified diff to stdout, with colours on a terminal."""
    if not _is_terminal(sys.stdout) or not _takes_colour():
        print_out(text)
        return
    for line in text.splitlines(keepends=True):
        colour = _COLOURS.get(line[:1]) if not line.startswith(("---", "+++")) else _HEADING
        shown = escape_control(line.rstrip("\n"))
        _put(sys.stdout, lambda shown=shown, colour=colour: sys.stdout.write(_coloured(shown, colour)))


def print_json(data: bytes) -> bool:
    """Writes a line of JSON to stdout, into a pipe always as UTF-8. Returns whether it may have a reader."""
    if sys.stdout is None or _is_terminal(sys.stdout):
        _write(sys.stdout, f"{data.decode()}\n")
        return sys.stdout is not None
    return _put(sys.stdout, lambda: sys.stdout.buffer.write(data + b"\n"))


def print_json_pieces(pieces: Iterable[bytes]) -> None:
    """Writes a JSON value that comes in pieces."""
    if sys.stdout is None or _is_terminal(sys.stdout):
        for one in pieces:
            _write(sys.stdout, one.decode())
    else:
        _put(sys.stdout, lambda: sys.stdout.buffer.writelines(pieces))


def print_note(text: str) -> None:
    """Writes a line of advice to stderr, unless -q hides it."""
    if not _hidden:
        _write(sys.stderr, f"{text}\n")


def warn(text: str) -> None:
    """Writes a warning or an error to stderr, also with -q."""
    _write(sys.stderr, f"{text}\n")


@contextmanager
def hide_notes(hidden: bool) -> Generator[None]:
    """Hides or shows notes of all threads."""
    before, _hidden[:] = _hidden[:], [True] if hidden else []
    try:
        yield
    finally:
        _hidden[:] = before


def render_table(rows: Iterable[Sequence[str]]) -> str:
    """Renders rows in columns without borders."""
    lines = [[to_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(measure_width, column)) for column in zip(*lines, strict=True)]
    return "".join(f"{'  '.join(map(pad, row, widths)).rstrip()}\n" for row in lines)


def can_show(text: str) -> bool:
    """Whether the encoding of stdout has these characters."""
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
        return  # closed by the caller
    shown = escape_control(text) if _is_terminal(stream) else text
    try:
        _put(stream, lambda: stream.write(shown))
    except UnicodeEncodeError:
        _put(stream, lambda: stream.write(shown.encode(stream.encoding, "backslashreplace").decode(stream.encoding)))


def _silence(stream: TextIO) -> None:
    from handrail.cli.files import silence  # noqa: PLC0415  most output has a reader

    silence(stream)


def _put(stream: TextIO, write: Callable[[], object]) -> bool:
    try:
        write()
        stream.flush()
    except BrokenPipeError:
        _silence(stream)
        return False
    except OSError as error:
        _silence(stream)
        raise CommandFailed(f"the output cannot be written: {error.strerror}", INFRASTRUCTURE) from None
    return True


@contextmanager
def print_slow_notice(options: SimpleNamespace, what: str) -> Generator[None]:
    """Tells a person at a terminal what the command waits for, after a second."""
    if options.json or options.quiet or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    text = f"waiting for {truncate(to_one_line(what), 100)} … Ctrl-C ends it"
    timer = threading.Timer(_PATIENCE_SECONDS, print_note, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # otherwise its line could break into a prompt
