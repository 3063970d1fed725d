"""The table of commands with the parser of their arguments."""

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from handrail.cli.exits import INFRASTRUCTURE, INTERRUPTED, OK, USAGE, CommandFailed
from handrail.cli.output import print_out
from handrail.protocol.text import quote_text

if TYPE_CHECKING:
    from datetime import datetime

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Have a model do a task here, with the tools; its words on stdout, progress on stderr."),
    "demo": ("demo", "See it at work without a key: a scripted model fixes a test in a temporary folder."),
    "mcp": ("mcp", "Be the tools of another program's agent: an MCP server over stdin and stdout."),
    "acp": ("acp", "Be the agent of an editor that speaks the Agent Client Protocol, over stdin and stdout."),
    "call": ("call", "Run one tool call and print its result."),
    "approvals": ("approvals", "List what waits for your yes or your reply, and what you granted."),
    "approvals allow": ("approvals", "Say yes to a request: keep what was tried, or run it, and print the result."),
    "approvals deny": ("approvals", "Say no to a request, and why."),
    "approvals reply": ("approvals", "Reply to a question of the model; its session goes on with that."),
    "approvals show": ("approvals", "Show a request with its preview; changes nothing."),
    "approvals retry": ("approvals", "Try the command of a request again in a copy, or another one in its place."),
    "approvals revoke": ("approvals", "Take back what you granted: a class of commands, or an opened folder."),
    "tools": ("tools", "List the tools that are offered."),
    "skills": ("skills", "List the skills that are found here, and what they leave of the tools."),
    "skills show": ("skills", "Show how a skill is understood: its tools, its rules, what it says; changes nothing."),
    "schema": ("tools", "Print the JSON Schema of everything on the wire."),
    "log": ("log", "Show what happened in a session, the last events last."),
    "log export": ("log", "Copy the events of a session to JSONL files, one a day."),
    "sessions": ("sessions", "List stored sessions with their state and size."),
    "sessions remove": ("sessions", "Remove a session with its journal, files and stored outputs."),
    "replay": (
        "replay",
        "Play a recorded session again on a copy of the workspace as it was, and compare every result.",
    ),
    "diff": ("changes", "Show what a change did to files."),
    "undo": ("changes", "Take back the last change in this workspace, or another; what changed since stays."),
    "redo": ("changes", "Take back the last undo."),
    "processes": ("processes", "List the commands that go on in the background, and those that did."),
    "processes log": ("processes", "Print what a background command has printed."),
    "processes write": ("processes", "Write a line to the input of a background command."),
    "processes forward": ("processes", "Open a port of a background command on this machine, until Ctrl-C."),
    "processes stop": ("processes", "End a background command with all that it started; its log stays."),
    "processes remove": ("processes", "End a background command where it runs, and forget it with its log."),
    "memory": ("memory", "List the notes that models made about this workspace."),
    "memory show": ("memory", "Print a note."),
    "memory remove": ("memory", "Remove a note: no later session reads it."),
    "audit": ("audit", "Show the last records of the audit."),
    "audit verify": ("audit", "Check that no record of the audit was changed, removed or inserted."),
    "policy explain": ("policy", "Say what policy decides about a command or a tool call, and why; nothing is run."),
    "policy modes": ("policy", "Show what each mode says where no rule does."),
    "policy test": ("policy", "Check the examples of the rules in force and of the built-in tables."),
    "policy replay": (
        "policy",
        "Judge the calls of before under the rules of today, from the facts that were recorded.",
    ),
    "doctor": ("doctor", "Check what handrail needs here; changes nothing."),
    "config": ("config", "Show every setting and rule, and where it comes from."),
    "trust": (
        "trust",
        "Let a project loosen the settings (handrail.toml) and bring servers (.mcp.json), exactly as they are now.",
    ),
}
"""The module in `handrail.cli.commands` of each command, with its line of help. The dictionary `COMMANDS` of the module
has the rest. A module is imported when one of its commands runs, or when its help is printed."""

_EXITS = {
    OK: "ok",
    USAGE: "wrong usage or settings; nothing was run",
    INFRASTRUCTURE: "the state folder cannot be used, or a defect",
    INTERRUPTED: "interrupted",
}
_TOOLS = ("read", "write", "edit", "find", "grep", "ls", "exec", "process", "apply_patch", "multi_edit", "delete")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


class Command(NamedTuple):
    """A command, as its module declares it."""

    run: Callable[[Namespace], int]
    """Returns the exit code."""
    add_arguments: Callable[[ArgumentParser], None]
    examples: tuple[str, str]
    exits: Mapping[int, str] = {}
    """Exit codes beside the common ones, or with another meaning."""
    takes_rest: bool = False
    """Whether the words after `--` are not options of handrail."""


def load_command(name: str) -> Command:
    """Imports the module of a command."""
    command: Command = import_module(f"handrail.cli.commands.{COMMANDS[name][0]}").COMMANDS[name]
    return command


def split_command(words: list[str]) -> tuple[str, list[str]]:
    """Splits the words into the name of a command and its arguments."""
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in COMMANDS and len(words) >= count and not _is_misnamed(name, words[count:]):
            return name, words[count:]
    first = words[0]
    if is_group(first) or first in COMMANDS:
        unknown = f"there is no command {quote_text(f'{first} {words[1]}')}.{_suggest_subcommand(first, words[1])}"
        raise CommandFailed(f"{unknown} See: handrail {first} --help")
    kind = "option" if first.startswith("-") else "command"
    raise CommandFailed(f"there is no {kind} {quote_text(first)}.{_suggest_command(first)} See: handrail --help")


def is_group(word: str) -> bool:
    """Whether a word begins several commands and is no command itself."""
    return word not in COMMANDS and bool(_list_subcommands(word))


def parse_arguments(name: str, words: list[str], command: Command | None = None) -> Namespace | None:
    """Parses the arguments of a command. Returns None after it printed the help.

    If the command takes the words after `--`, these are its `rest`: argparse would take some of them for options.
    """
    command, end = command or load_command(name), len(words)
    if command.takes_rest and "--" in words:
        end = words.index("--")
    elif command.takes_rest and words and not words[0].startswith("-"):
        import shlex  # noqa: PLC0415  only for a mistake

        raise CommandFailed(
            f"put -- before the command, or its options are taken for ours: handrail {name} -- {shlex.join(words)}"
        )
    try:
        parser = _build_parser(name, command)
        options, unknown = parser.parse_known_args(words[:end])
    except SystemExit:  # argparse ends so after it printed the help
        return None
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}", parser.suggest(unknown))
    options.rest = words[end + 1 :] if end < len(words) else None
    return options


def render_overview(group: str = "") -> str:
    """Renders the help of `handrail --help`, or of `handrail GROUP --help`."""
    if group:
        listed = _render_commands(_list_subcommands(group))
        return "\n".join((f"usage: handrail {group} COMMAND [options]\n", "commands:", *listed, ""))
    return "\n".join(
        (
            "Tools for coding agents that you can watch, check and take back.\n",
            "usage: handrail COMMAND [options]\n",
            "commands:",
            *_render_commands(list(COMMANDS)),
            "\nexamples:",
            "  handrail demo",
            "  handrail run 'fix the failing test' --model anthropic:NAME",
            "\nhandrail COMMAND --help explains one; handrail --version says which this is.\n",
        )
    )


def add_json_option(parser: ArgumentParser, help_text: str = "print one JSON object") -> None:
    parser.add_argument("--json", action="store_true", help=help_text)


def add_mode_option(parser: ArgumentParser) -> None:
    parser.add_argument("--mode", choices=("plan", "ask", "auto", "full"), help="how much runs unasked")


def add_plain_option(parser: ArgumentParser) -> None:
    parser.add_argument("--plain", action="store_true", help="ask without frames, one line a choice (as with NO_COLOR)")


def add_workspace_option(parser: ArgumentParser, help_text: str = "the folder to work in (the current folder)") -> None:
    parser.add_argument("--workspace", metavar="DIR", help=help_text)


def parse_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Builds the type of an argument that is a whole number."""

    def parse(text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) < 19 and least <= int(text) <= (most or int(text)):
            return int(text)
        to = "on" if most is None else f"to {most}"
        raise ArgumentTypeError(f"must be a whole number from {least} {to}, got {quote_text(text)}")

    return parse


def parse_nonempty_text(text: str) -> str:
    if text:
        return text
    raise ArgumentTypeError("must not be empty")


def parse_past_time(text: str) -> "datetime":
    """Parses an age such as `7d`, or a date with or without a time. Local time is the default."""
    from datetime import datetime, timedelta  # noqa: PLC0415  help needs no clock

    number, unit = text[:-1], _UNITS.get(text[-1:])
    try:
        if unit and number.isascii() and number.isdigit():
            return datetime.now().astimezone() - timedelta(**{unit: int(number)})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        problem = f"must be a time such as 7d, 12h, 30m or 2026-07-01T09:30, got {quote_text(text)}"
        raise ArgumentTypeError(problem) from None


class _Parser(ArgumentParser):
    def error(self, message: str, suggestion: str = "") -> NoReturn:
        raise CommandFailed(f"{message}.{suggestion} See: {self.prog} --help")

    def suggest(self, unknown: list[str]) -> str:
        """Suggests the nearest option, or the quotes that a prompt lacks."""
        if unknown[0].startswith("--"):
            options = [option[2:] for option in self._option_string_actions if option.startswith("--")]
            near = _find_near(unknown[0][2:].split(" ")[0], options)
            return f" Did you mean --{near}?" if near else ""
        takes_prompt = any(action.metavar == "PROMPT" for action in self._actions)
        unquoted = takes_prompt and not unknown[0].startswith("-")
        return f" A prompt of several words goes in quotes: {self.prog} 'fix the failing test'." if unquoted else ""

    def print_help(self, file: Any = None) -> None:  # noqa: ARG002  argparse never says which
        print_out(self.format_help())


class _HelpFormatter(RawDescriptionHelpFormatter):
    """Breaks no line at a hyphen."""

    def __init__(self, prog: str) -> None:
        # Without a width the formatter imports shutil to measure the terminal, even if it prints no help.
        super().__init__(prog, width=_measure_help_width(), max_help_position=28)

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap  # noqa: PLC0415  as argparse has it

        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


def _build_parser(name: str, command: Command) -> _Parser:
    examples = "\n".join(f"  {example}" for example in command.examples)
    exits = sorted({**_EXITS, **command.exits}.items())
    codes = "\n".join(_format_hanging(f"  {code:<4} ", meaning) for code, meaning in exits)
    below = _list_subcommands(name)
    commands = "\n".join(("\n\ncommands:", *_render_commands(below))) if below else ""
    parser = _Parser(
        f"handrail {name}",
        description=f"{_format_hanging('', COMMANDS[name][1])}\n\nexamples:\n{examples}{commands}",
        epilog=f"exit codes:\n{codes}",
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no notes on stderr, only warnings and errors")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; -vv: a traceback after a defect")
    return parser


def _is_misnamed(name: str, words: list[str]) -> bool:
    """Whether the next word is meant as the second of a command: a command that has such takes no words itself."""
    return bool(_list_subcommands(name)) and bool(words) and not words[0].startswith("-")


def _list_subcommands(name: str) -> list[str]:
    return [other for other in COMMANDS if other.startswith(f"{name} ")]


def _render_commands(names: list[str]) -> list[str]:
    width = max(map(len, names))
    return [_format_hanging(f"  {name:<{width}}  ", COMMANDS[name][1]) for name in names]


def _format_hanging(head: str, text: str) -> str:
    """Wraps the text behind its head to the width of the terminal, and breaks no word at a hyphen."""
    lines, width = [head], _measure_help_width()
    for word in text.split():
        if len(lines[-1]) + len(word) > width and lines[-1].strip():
            lines.append(" " * len(head))
        lines[-1] += f"{word} "
    return "\n".join(line.rstrip() for line in lines)


def _measure_help_width() -> int:
    try:
        return max(60, min(120, int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)))
    except (OSError, ValueError):
        return 80


def _suggest_command(word: str) -> str:
    if word in _TOOLS:
        return f" {word} is a tool: handrail call {word} '{{…}}' (handrail tools --json has its arguments)."
    first_words = dict.fromkeys(name.partition(" ")[0] for name in COMMANDS)
    near = _find_near(word.lower(), [*COMMANDS, *first_words])
    return f" Did you mean {near}?" if near else ""


def _suggest_subcommand(group: str, word: str) -> str:
    near = _find_near(word.lower(), [name.removeprefix(f"{group} ") for name in _list_subcommands(group)])
    return f" Did you mean {group} {near}?" if near else ""


def _find_near(word: str, names: list[str]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    return next(iter(get_close_matches(word[:80], names, n=1)), None)
