"""The tools as commands for people, without JSON."""

import shlex
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.api import load_builtin_spec
from handrail.cli.commands.call import CALL_EXITS, add_call_options, run_command, run_tool
from handrail.cli.exits import FAILED, NOT_RUN, OK, USAGE, CommandFailed
from handrail.cli.parser import Command
from handrail.cli.stdin import read_stdin_text
from handrail.protocol.arguments import CONVERSION_ERRORS, explain_conversion_error
from handrail.protocol.wire import convert

if TYPE_CHECKING:
    from argparse import ArgumentParser

_OTHER = frozenset({("write", "content"), ("exec", "command")})
"""Arguments that are stdin, or the words after `--`."""
_PATH_OPTIONAL = frozenset({"ls", "find", "grep"})
_NEGATED = {"case_sensitive": "ignore case"}
"""The help of an option that disables an argument."""
_METAVARS = {"find.pattern": "GLOB", "edit.old_text": "OLD", "edit.new_text": "NEW"}


def _run(tool: str, options: SimpleNamespace) -> int:
    if tool == "exec":
        return run_command(options, lambda: build_arguments(tool, options))
    return run_tool(options, tool, build_arguments(tool, options))


def build_arguments(tool: str, options: SimpleNamespace) -> dict[str, Any]:
    """The arguments of the call. Only those that the person gave."""
    spec, arguments = load_builtin_spec(tool), dict[str, Any]()
    for field in msgspec.structs.fields(spec.arguments):
        if (tool, field.name) in _OTHER:
            arguments[field.encode_name] = read_stdin_text() if tool == "write" else _join_words(options.rest)
        elif field.default is True:
            arguments |= {field.encode_name: False} if getattr(options, f"no_{field.name}") else {}
        elif (value := getattr(options, field.name)) is not None and value is not False:
            arguments[field.encode_name] = _decode_value(value, field.type)
    try:
        convert(arguments, spec.arguments)
    except CONVERSION_ERRORS as error:
        raise CommandFailed(explain_conversion_error(spec, arguments, error).message) from None
    return arguments


def _join_words(words: list[str] | None) -> str:
    """One word is a command line of its own."""
    if not words:
        raise CommandFailed("the command is missing. Nothing was run.", then="handrail exec -- make fmt")
    return words[0] if len(words) == 1 else shlex.join(words)


def _decode_value(value: Any, kind: Any) -> Any:
    """A number for a word that must be one. A word that is none stays, and the check of the arguments names it."""
    with suppress(*CONVERSION_ERRORS):
        return convert(value, kind)
    with suppress(msgspec.DecodeError, UnicodeEncodeError, TypeError):
        return msgspec.json.decode(value)
    return value


def add_arguments(tool: str, parser: "ArgumentParser") -> None:
    """Adds a positional argument for each required one of the tool, and an option for each other one."""
    for field in msgspec.structs.fields(load_builtin_spec(tool).arguments):
        if (tool, field.name) in _OTHER:
            continue
        option, text = f"--{field.name.replace('_', '-')}", _find_description(field.type)
        metavar = _METAVARS.get(f"{tool}.{field.name}", field.name.rpartition("_")[2].upper())
        if field.name == "path" and tool in _PATH_OPTIONAL:
            parser.add_argument("path", metavar="PATH", nargs="?", default=".", help=text)
        elif field.name == "paths":
            parser.add_argument("paths", metavar="PATH", nargs="+", help=text)
        elif field.required:
            parser.add_argument(field.name, metavar="FILE" if field.name == "path" else metavar, help=text)
        elif field.default is True:
            parser.add_argument(option.replace("--", "--no-", 1), action="store_true", help=_NEGATED[field.name])
        elif field.default is False:
            parser.add_argument(option, action="store_true", help=text)
        elif field.default == ():
            parser.add_argument(option, metavar=metavar, action="append", help=f"{text} (repeatable)")
        else:
            text += f" ({field.default})" if field.default is not None else ""
            parser.add_argument(option, metavar=metavar, help=text)
    add_call_options(parser)


def _find_description(kind: Any) -> str:
    """The description of an argument for models, as help: `file to read`."""
    metas = (part for part in getattr(kind, "__metadata__", ()) if isinstance(part, msgspec.Meta))
    text = next((meta.description for meta in metas if meta.description), "").rstrip(".")
    return (text[:1].lower() + text[1:]).replace("%", "%%")


def _build_command(tool: str, *examples: *tuple[str, str]) -> Command:
    return Command(partial(_run, tool), partial(add_arguments, tool), examples, CALL_EXITS)


COMMANDS = {
    "exec": Command(
        partial(_run, "exec"),
        partial(add_arguments, "exec"),
        ("handrail exec -- make fmt", "handrail exec --mode auto -- 'pytest -q && ruff check'"),
        {
            OK: "the command ended with 0",
            FAILED: "any other code is the command's own",
            USAGE: "wrong options, nothing was run; or the command's own code",
            NOT_RUN: "the command was denied, waits for approval, or was stopped",
        },
        takes_rest=True,
    ),
    "read": _build_command("read", "handrail read README.md", "handrail read build.log --offset -200"),
    "edit": _build_command(
        "edit", "handrail edit setup.cfg 'version = 1' 'version = 2'", "handrail edit a.py old new --replace-all"
    ),
    "write": _build_command("write", "handrail write a.txt < b.txt", "handrail write a.txt --mode auto < b.txt"),
    "grep": _build_command("grep", "handrail grep TODO src", "handrail grep 'def \\w+' --file-pattern '*.py'"),
    "find": _build_command("find", "handrail find '*.py'", "handrail find 'test_*' tests --exclude data"),
    "ls": _build_command("ls", "handrail ls", "handrail ls src --depth 2"),
}
