"""Output of the command line: as it is into a pipe, without control characters onto a terminal."""

import os
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TextIO

from handrail.cli.exits import INFRASTRUCTURE, CommandFailed
from handrail.protocol.text import escape_control, measure_width, to_one_line, truncate
from handrail.terminal.style import (
    Paint,
    can_encode,
    choose_paint,
    measure_columns,
    paint_nothing,
    wrap_line,
)
from handrail.terminal.tables import layout_table

_PATIENCE_SECONDS = 1.0
_COMMAND = re.compile(r"(?:^\s*(?:\$ )?|: |`)handrail [a-z]")
"""A line with a command of handrail to copy."""
_NEXT_COMMAND = re.compile(r"(?<=[,;]) (?=[a-z ]+: handrail )")
"""The blank before another command of a line."""
_IN_SESSION = "HANDRAIL_IN_SESSION"
"""The variable that a session sets for a command whose output it shows."""
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
    """Writes a unified diff to stdout, with colours if stdout shows them."""
    paint = choose_out_paint()
    if paint is paint_nothing:
        print_out(text)
        return
    from handrail.terminal.changes_text import paint_diff  # noqa: PLC0415  few commands show a diff

    print_painted("".join(f"{line}\n" for line in paint_diff(text.removesuffix("\n"), paint)))


def choose_out_paint() -> Paint:
    """The painter for stdout."""
    return choose_paint(sys.stdout, os.environ)


def print_painted(text: str) -> None:
    """Writes a text to stdout that was escaped before it was painted."""
    _write_encodable(sys.stdout, text)


def warn_painted(text: str) -> None:
    """Writes a line to stderr that was escaped before it was painted."""
    _write_encodable(sys.stderr, f"{text}\n")


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
        warn(text)


def warn(text: str) -> None:
    """Writes a warning or an error to stderr, also with -q."""
    if not _is_terminal(sys.stderr):
        _write_encodable(sys.stderr, f"{text}\n")
        return
    in_session, columns = bool(os.environ.get(_IN_SESSION)), measure_columns(sys.stderr) or 80
    for line in escape_control(_name_slash_commands(text)).split("\n"):
        if in_session or not _COMMAND.search(line):
            shown = wrap_line(line, columns, 2)
        else:  # a command to copy stays in one line
            shown = (line if measure_width(line) <= columns else _NEXT_COMMAND.sub("\n  ", line)) + "\n"
        _write_encodable(sys.stderr, shown)


def print_error(text: str, then: str = "") -> None:
    """Writes an error for a person to stderr: what failed and what was not done, then one command."""
    from handrail.terminal.error_text import render_error  # noqa: PLC0415  most commands do not fail

    if _is_terminal(sys.stderr):
        text, then = escape_control(text), escape_control(then)
    paint, columns = choose_paint(sys.stderr, os.environ), measure_columns(sys.stderr)
    for row in render_error(text, then, paint, columns, in_session=bool(os.environ.get(_IN_SESSION))):
        _write_encodable(sys.stderr, f"{row}\n")


def _name_slash_commands(text: str) -> str:
    if not os.environ.get(_IN_SESSION):
        return text
    from handrail.terminal.slash_hints import to_slash_commands  # noqa: PLC0415  a shell has none

    return to_slash_commands(text)


@contextmanager
def hide_notes(hidden: bool) -> Generator[None]:
    """Hides or shows notes of all threads."""
    before, _hidden[:] = _hidden[:], [True] if hidden else []
    try:
        yield
    finally:
        _hidden[:] = before


def render_table(rows: Iterable[Sequence[str]], paint_cell: Callable[[int, str], str] = lambda _, cell: cell) -> str:
    """Renders rows in columns without borders. `paint_cell` gets the number of the column, from 0."""
    return layout_table(rows, measure_columns(sys.stdout), paint_cell)


def can_show(text: str) -> bool:
    """Whether the encoding of stdout has these characters."""
    return can_encode(sys.stdout, text)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _write(stream: TextIO | None, text: str) -> None:
    _write_encodable(stream, escape_control(text) if _is_terminal(stream) else text)


def _write_encodable(stream: TextIO | None, shown: str) -> None:
    if stream is None:
        return  # closed by the caller
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
