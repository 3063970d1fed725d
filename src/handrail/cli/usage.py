"""The help of the commands, with the parser of their arguments."""

import os
import shlex
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable
from datetime import datetime, timedelta
from textwrap import wrap
from types import SimpleNamespace
from typing import Any, NoReturn

from handrail.cli.exits import INFRASTRUCTURE, INTERRUPTED, OK, USAGE, CommandFailed
from handrail.cli.output import print_out
from handrail.cli.parser import (
    COMMANDS,
    Command,
    add_common_options,
    list_groups,
    list_subcommands,
    load_command,
)
from handrail.protocol.text import find_similar, render_value

COMMON_EXITS = {
    OK: "ok",
    USAGE: "wrong usage or settings; nothing was run",
    INFRASTRUCTURE: "internal error, or the state folder is unusable",
    INTERRUPTED: "interrupted",
}
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def parse_arguments(name: str, words: list[str], command: Command | None = None) -> SimpleNamespace | None:
    """Parses the arguments of a command. Returns None after it printed the help.

    If the command takes the words after `--`, these are its `rest`: argparse would take some of them for options.
    """
    command, end = command or load_command(name), len(words)
    if command.takes_rest and "--" in words:
        end = words.index("--")
    elif command.takes_rest and words and not words[0].startswith("-"):
        problem = (
            "put -- before the command. Otherwise handrail reads the command's options as its own. Nothing was run."
        )
        raise CommandFailed(problem, then=f"handrail {name} -- {shlex.join(words)}")
    try:
        parser = build_parser(name, command)
        options, unknown = parser.parse_known_args(words[:end], SimpleNamespace())
    except SystemExit:  # argparse ends so after it printed the help
        return None
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}", parser.suggest(unknown))
    options.rest = words[end + 1 :] if end < len(words) else None
    return options


def render_overview(group: str = "") -> str:
    """Renders the help of `handrail --help`, or of `handrail GROUP --help`."""
    if group:
        listed = _render_commands(list_subcommands(group))
        return "\n".join((f"usage: handrail {group} COMMAND [options]\n", "commands:", *listed, ""))
    return "\n".join(
        (
            "Tools for coding agents that you can watch, check and undo.\n",
            "usage: handrail COMMAND [options]\n",
            *(line for title, rows in list_groups().items() for line in (f"{title}:", *_render_commands(rows), "")),
            "examples:",
            "  handrail demo",
            "  handrail run 'fix the failing test' --model anthropic:NAME",
            "\nhandrail help COMMAND explains a command.\n",
        )
    )


def list_option_names(name: str) -> list[str]:
    """The long options of a command."""
    parser = build_parser(name, load_command(name))
    return [option for option in parser._option_string_actions if option.startswith("--")]  # noqa: SLF001


def parse_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Builds the type of an argument that is a whole number."""

    def parse(text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) < 19 and least <= int(text) <= (most or int(text)):
            return int(text)
        to = "on" if most is None else f"to {most}"
        raise ArgumentTypeError(f"must be a whole number from {least} {to}, got {render_value(text)}")

    return parse


def parse_nonempty_text(text: str) -> str:
    if text:
        return text
    raise ArgumentTypeError("must not be empty")


def parse_past_time(text: str) -> datetime:
    """Parses an age such as `7d`, or a date with or without a time. Local time is the default."""
    number, unit = text[:-1], _UNITS.get(text[-1:])
    try:
        if unit and number.isascii() and number.isdigit():
            return datetime.now().astimezone() - timedelta(**{unit: int(number)})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        problem = f"must be a time such as 7d, 12h, 30m or 2026-07-01T09:30, got {render_value(text)}"
        raise ArgumentTypeError(problem) from None


class _Parser(ArgumentParser):
    def error(self, message: str, suggestion: str = "") -> NoReturn:
        raise CommandFailed(f"{message}.{suggestion}")

    def suggest(self, unknown: list[str]) -> str:
        """Suggests the nearest option, or the quotes that a prompt lacks."""
        if unknown[0].startswith("--"):
            options = [option[2:] for option in self._option_string_actions if option.startswith("--")]
            near = find_similar(unknown[0][2:].split(" ")[0], options)
            return f" Did you mean --{near}?" if near else ""
        takes_prompt = any(action.metavar == "PROMPT" for action in self._actions)
        unquoted = takes_prompt and not unknown[0].startswith("-")
        return f" A prompt of several words goes in quotes: {self.prog} 'fix the failing test'." if unquoted else ""

    def _match_arguments_partial(self, actions: Any, arg_strings_pattern: str) -> list[int]:
        """Leaves an optional word to the words behind the next option. Python 3.11 takes it as missing before it."""
        counts = super()._match_arguments_partial(actions, arg_strings_pattern)
        while counts and not counts[-1] and "O" in arg_strings_pattern:
            counts.pop()
        return counts

    def print_help(self, file: Any = None) -> None:  # noqa: ARG002  argparse never says which
        print_out(self.format_help())


class _HelpFormatter(RawDescriptionHelpFormatter):
    """Breaks no line at a hyphen."""

    def __init__(self, prog: str) -> None:
        # Without a width the formatter imports shutil to measure the terminal, even if it prints no help.
        super().__init__(prog, width=_measure_help_width(), max_help_position=28)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


def build_parser(name: str, command: Command) -> _Parser:
    examples = "\n".join(f"  {example}" for example in command.examples)
    exits = sorted({**COMMON_EXITS, **command.exits}.items())
    codes = "\n".join(_format_hanging(f"  {code:<4} ", meaning) for code, meaning in exits)
    below = list_subcommands(name)
    commands = "\n".join(("\n\ncommands:", *_render_commands(below))) if below else ""
    parser = _Parser(
        f"handrail {name}",
        description=f"{_format_hanging('', COMMANDS[name][1])}\n\nexamples:\n{examples}{commands}",
        epilog=f"exit codes:\n{codes}",
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    add_common_options(parser)
    return parser


def _render_commands(rows: dict[str, str]) -> list[str]:
    width = max(map(len, rows))
    return [_format_hanging(f"  {name:<{width}}  ", text) for name, text in rows.items()]


def _format_hanging(head: str, text: str) -> str:
    """Wraps the text behind its head to the width of the terminal, and breaks no word at a hyphen."""
    width, indent = _measure_help_width(), " " * len(head)
    return "\n".join(wrap(text, width, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)) or head


def _measure_help_width() -> int:
    try:
        return max(60, min(120, int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)))
    except (OSError, ValueError):
        return 80
