"""Understands the words of a command line, and words the help."""

from argparse import ArgumentParser, Namespace
from typing import Any, NoReturn

from handrail.cli.commands import COMMANDS, CliCommand
from handrail.cli.exits import CommandFailed
from handrail.cli.help_layout import Formatter, format_hanging
from handrail.cli.output import print_out
from handrail.protocol.text import quote_text

_TOOLS = ("read", "write", "edit", "find", "grep", "ls", "exec", "process", "apply_patch", "multi_edit", "delete")


def split(words: list[str]) -> tuple[str, list[str]]:
    """The command that the first one or two words name, and the words after it."""
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in COMMANDS and len(words) >= count and not _is_misnamed(name, words[count:]):
            return name, words[count:]
    if is_group(first := words[0]) or first in COMMANDS:
        told = f"there is no command {quote_text(f'{first} {words[1]}')}.{_nearest_in(first, words[1])}"
        raise CommandFailed(f"{told} See: handrail {first} --help")
    raise CommandFailed(f"there is no {_kind(first)} {quote_text(first)}.{_nearest(first)} See: handrail --help")


def is_group(word: str) -> bool:
    """Whether a word is the first of several commands, and none by itself."""
    return word not in COMMANDS and bool(_below(word))


def _is_misnamed(name: str, words: list[str]) -> bool:
    """Whether what follows is meant as the second word of a command: those that have such take no words themselves."""
    return bool(_below(name)) and bool(words) and not words[0].startswith("-")


def _below(name: str) -> dict[str, CliCommand]:
    """The commands whose first word is this one."""
    return {other: command for other, command in COMMANDS.items() if other.startswith(f"{name} ")}


def parse(name: str, words: list[str]) -> Namespace | None:
    """The options of a command; None when they asked for its help, which is printed. Where a command takes words of
    its own after `--`, these are its `rest`: argparse would take some of them for options."""
    command, end = COMMANDS[name], len(words)
    if command.takes_rest and "--" in words:
        end = words.index("--")
    elif command.takes_rest and words and not words[0].startswith("-"):
        raise _without_dashes(name, words)
    try:
        options = _parser(name, command).parse_args(words[:end])
    except SystemExit:  # how argparse ends after the help
        return None
    options.rest = words[end + 1 :] if end < len(words) else None
    return options


def _without_dashes(name: str, words: list[str]) -> CommandFailed:
    import shlex  # noqa: PLC0415  only for a mistake

    return CommandFailed(
        f"put -- before the command, or its options are taken for ours: handrail {name} -- {shlex.join(words)}"
    )


def render_overview(group: str = "") -> str:
    """What `handrail --help` prints, or `handrail GROUP --help` about the commands that begin with that word."""
    if group:
        return "\n".join((f"usage: handrail {group} COMMAND [options]\n", "commands:", *_listed(_below(group)), ""))
    return "\n".join(
        (
            "Tools for coding agents that you can watch, check and take back.\n",
            "usage: handrail COMMAND [options]\n",
            "commands:",
            *_listed(COMMANDS),
            "\nexamples:",
            "  handrail demo",
            "  handrail run 'fix the failing test' --model anthropic:NAME",
            "\nhandrail COMMAND --help explains one; handrail --version says which this is.\n",
        )
    )


def _listed(commands: dict[str, CliCommand]) -> list[str]:
    width = max(map(len, commands))
    return [format_hanging(f"  {name:<{width}}  ", command.sentence) for name, command in commands.items()]


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandFailed(f"{message}.{self._meant(message)} See: {self.prog} --help")

    def _meant(self, message: str) -> str:
        """The option that is nearest to one that there is not; the quotes that words of a prompt lack."""
        from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

        start, _, unknown = message.partition("unrecognized arguments: --")
        names = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        near = [] if start else get_close_matches(unknown.split(" ")[0][:80], names, n=1)
        if near:
            return f" Did you mean --{near[0]}?"
        words = message.removeprefix("unrecognized arguments: ")
        takes_prompt = any(action.metavar == "PROMPT" for action in self._actions)
        unquoted = takes_prompt and words != message and not words.startswith("-")
        return f" A prompt of several words goes in quotes: {self.prog} 'fix the failing test'." if unquoted else ""

    def print_help(self, file: Any = None) -> None:  # noqa: ARG002  argparse never says which
        print_out(self.format_help())


def _parser(name: str, command: CliCommand) -> ArgumentParser:
    examples = "\n".join(f"  {example}" for example in command.examples)
    exits = "\n".join(format_hanging(f"  {code:<4} ", meaning) for code, meaning in sorted(command.exits.items()))
    commands = "\n".join(("\n\ncommands:", *_listed(_below(name)))) if _below(name) else ""
    parser = _Parser(
        f"handrail {name}",
        description=f"{format_hanging('', command.sentence)}\n\nexamples:\n{examples}{commands}",
        epilog=f"exit codes:\n{exits}",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    command.arguments(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no notes on stderr, only warnings and errors")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; -vv: a traceback after a defect")
    return parser


def _kind(word: str) -> str:
    return "option" if word.startswith("-") else "command"


def _nearest(word: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    if word in _TOOLS:
        return f" {word} is a tool: handrail call {word} '{{…}}' (handrail tools --json has its arguments)."
    first_words = dict.fromkeys(name.partition(" ")[0] for name in COMMANDS)
    near = get_close_matches(word.lower()[:80], [*COMMANDS, *first_words], n=1)
    return f" Did you mean {near[0]}?" if near else ""


def _nearest_in(group: str, word: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    names = [name.removeprefix(f"{group} ") for name in _below(group)]
    near = get_close_matches(word.lower()[:80], names, n=1)
    return f" Did you mean {group} {near[0]}?" if near else ""
