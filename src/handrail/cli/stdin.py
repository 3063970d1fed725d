"""The input of a command: stdin, or an argument in JSON."""

import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from handrail.cli.exits import CommandFailed
from handrail.cli.output import print_note

_MAX_LINE_BYTES = 64 * 1024 * 1024
_MAX_PROMPT_BYTES = 1_000_000


def read_json_argument(text: str, tool: str) -> Any:
    """Decodes the arguments of the tool. `-` reads them from stdin."""
    awaited = "waiting for the arguments as JSON; end with Ctrl-D"
    data = _read_stdin("the arguments", awaited) if text == "-" else os.fsencode(text)
    if not data.strip():
        raise CommandFailed("the arguments are empty. Nothing was run. For a tool without arguments, pass {}.")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        example = """'{"command": "make"}'""" if tool == "exec" else """'{"path": "README.md"}'"""
        raise CommandFailed(
            f"the arguments are not JSON: {error}. Nothing was run. Write one object: {example}"
        ) from None


def read_stdin_lines() -> Iterator[bytes | None]:
    """The lines of stdin as they come. None stands for a line that is too long."""
    stdin = _open_stdin("the lines", "waiting for one JSON object a line; end with Ctrl-D")
    while line := stdin.readline(_MAX_LINE_BYTES):
        if line.endswith(b"\n") or len(line) < _MAX_LINE_BYTES:
            yield line.removesuffix(b"\n")
        else:
            while line and not line.endswith(b"\n"):
                line = stdin.readline(_MAX_LINE_BYTES)
            yield None


def read_stdin_text() -> str:
    """The whole of stdin as text."""
    try:
        return _read_stdin("the content", "waiting for the content; end with Ctrl-D").decode()
    except UnicodeDecodeError as error:
        raise CommandFailed(
            f"the content is not UTF-8: {error.reason} at byte {error.start}. Nothing was run."
        ) from None


def read_prompt() -> str:
    """The whole of stdin as a prompt, or as a part of it."""
    data = _open_stdin("the prompt", "waiting for the prompt; end with Ctrl-D").read(_MAX_PROMPT_BYTES + 1)
    if len(data) > _MAX_PROMPT_BYTES:
        problem = "stdin is larger than 1 MB, which is too much for a prompt. Nothing was run."
        raise CommandFailed(f"{problem} Save it in a file of the workspace, and name that file in the prompt.")
    return data.decode(errors="replace")


def _read_stdin(content: str, note: str) -> bytes:
    data = _open_stdin(content, note).read(_MAX_LINE_BYTES + 1)
    if len(data) > _MAX_LINE_BYTES:
        raise CommandFailed(f"{content} cannot be larger than 64 MiB. Nothing was run.")
    return data


def _open_stdin(content: str, note: str) -> BinaryIO:
    """`note`: what a person at a terminal reads meanwhile."""
    if sys.stdin is None:
        raise CommandFailed(f"{content} cannot be read: stdin is closed. Nothing was run.")
    if sys.stdin.isatty():
        print_note(note)
    return sys.stdin.buffer
