"""What policy explain is asked: a command or a tool call, from the words of a command line or from a line of JSON."""

import shlex
from argparse import Namespace
from typing import Any

import msgspec

from handrail.cli.context import read_json_argument
from handrail.cli.exits import CommandFailed
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text, truncate
from handrail.protocol.wire import Json, get_json_decoder

_FORMS = 'it has to be {"command": …}, with "cwd" if need be, or {"tool": …, "args": …}, both with "mode" if need be'
_WAYS = "-- COMMAND, --tool NAME --args JSON, or --stdin"


class PolicyQuery(msgspec.Struct, frozen=True):
    """One call to be judged; a command is a call of exec."""

    tool: str
    args: Json
    mode: Mode | None = None

    @property
    def called(self) -> str:
        """The call as a person may read it, once it is known to be one."""
        return (
            f"$ {self.args['command']}" if self.tool == "exec" else f"{self.tool} {truncate(_json(self.args), 2_000)}"
        )


class _PolicyQueryLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: str | None = None
    tool: str | None = None
    args: Any = None
    cwd: str | None = None
    mode: Mode | None = None


_read_line = get_json_decoder(_PolicyQueryLine).decode


def read_query(options: Namespace) -> PolicyQuery | None:
    """The one question that was asked; None where they come as lines."""
    if options.words:
        example = f"handrail policy explain -- {shlex.join(options.words)}"
        raise CommandFailed(f"put -- before the command, or its options are taken for ours: {example}")
    if (options.rest is not None) + (options.tool is not None) + options.stdin != 1:
        raise CommandFailed(f"say what to explain in one of three ways: {_WAYS}. See: handrail policy explain --help")
    if (options.tool is None) != (options.args is None):
        raise CommandFailed("--tool and --args belong together; without any arguments, pass --args '{}'")
    if options.tool is not None and options.cwd is not None:
        raise CommandFailed("--cwd is for commands; a tool has what it needs in its arguments")
    if options.tool is not None:
        return PolicyQuery(options.tool, read_json_argument(options.args))
    return None if options.stdin else _command(_text(options.rest or []), options.cwd, None)


def parse_query_line(line: bytes | None, cwd: str | None) -> PolicyQuery:
    """The question in a line; ToolError where there is none."""
    if line is None:
        raise ToolError("INVALID_ARGUMENT", "the line is larger than 64 MiB")
    if not line.strip():
        raise ToolError("INVALID_ARGUMENT", f"the line is empty; {_FORMS}")
    try:
        read = _read_line(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ToolError(
            "INVALID_ARGUMENT", f"the line is no question: {clip_text(str(error), 400)}; {_FORMS}"
        ) from None
    if read.command is not None and read.tool is None and read.args is None:
        return _command(read.command, cwd if read.cwd is None else read.cwd, read.mode)
    if read.tool is not None and read.command is None and read.cwd is None:
        return PolicyQuery(read.tool, read.args, read.mode)
    raise ToolError("INVALID_ARGUMENT", f"the line is no question; {_FORMS}")


def _text(words: list[str]) -> str:
    """One word is a command as it is; several are what a shell has taken apart already."""
    if not words:
        raise CommandFailed("the command is missing behind --")
    return words[0] if len(words) == 1 else shlex.join(words)


def _command(text: str, cwd: str | None, mode: Mode | None) -> PolicyQuery:
    return PolicyQuery("exec", {"command": text} if cwd is None else {"command": text, "cwd": cwd}, mode)


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
