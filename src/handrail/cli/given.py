"""What a person gives a command to read: JSON as an argument or on stdin, and lines on stdin."""

import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from handrail.cli.exits import CommandFailed
from handrail.cli.output import print_note

_MAX_LINE_BYTES = 64 * 1024 * 1024


def read_json_argument(text: str) -> Any:
    """The arguments of a tool, as JSON; `-` reads it from stdin."""
    data = _all_of_stdin() if text == "-" else os.fsencode(text)
    if not data.strip():
        raise CommandFailed("the arguments are empty; without any, pass {}. Nothing was run.")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        example = """'{"path": "README.md"}'"""
        raise CommandFailed(
            f"the arguments are not JSON: {error}. Nothing was run. Write them as one object: {example}"
        ) from None


def read_stdin_lines() -> Iterator[bytes | None]:
    """Every line of stdin as soon as it is there, without its end; None for one that is too long to be held."""
    stdin = _stdin("the lines", "waiting for one JSON object a line; end with Ctrl-D")
    while line := stdin.readline(_MAX_LINE_BYTES):
        if line.endswith(b"\n") or len(line) < _MAX_LINE_BYTES:
            yield line.removesuffix(b"\n")
        else:
            while line and not line.endswith(b"\n"):
                line = stdin.readline(_MAX_LINE_BYTES)
            yield None


def _all_of_stdin() -> bytes:
    data = _stdin("the arguments", "waiting for the arguments as JSON; end with Ctrl-D").read(_MAX_LINE_BYTES + 1)
    if len(data) > _MAX_LINE_BYTES:
        raise CommandFailed("the arguments are larger than 64 MiB. Nothing was run.")
    return data


def _stdin(what: str, waiting: str) -> BinaryIO:
    if sys.stdin is None:
        raise CommandFailed(f"{what} cannot be read: stdin is closed. Nothing was run.")
    if sys.stdin.isatty():
        print_note(waiting)
    return sys.stdin.buffer
