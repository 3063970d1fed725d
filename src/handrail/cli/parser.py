"""The commands of the command line."""

import os
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from handrail.cli import options
from handrail.cli.exits import FAILED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, USAGE, WAITING, CommandFailed
from handrail.cli.output import print_out
from handrail.protocol.text import quote_text

# § [cli.commands] Every command on one page: its module, what it does, its arguments, two examples, what its exit
# § says. A command's module is imported when the command is run, not before: help and wrong usage cost next to
# § nothing.


class CliCommand(NamedTuple):
    """One command of the command line."""

    function: str
    """`module:function` below handrail.cli; the function takes the options, and gives the exit code."""
    sentence: str
    arguments: Callable[[ArgumentParser], None]
    examples: tuple[str, str]
    exits: dict[int, str]
    takes_rest: bool = False
    """Whether the words after `--` are its own."""

    @property
    def module(self) -> str:
        """The module below handrail.cli."""
        return self.function.partition(":")[0]


_EXITS = {
    OK: "ok",
    USAGE: "wrong usage or settings; nothing was run",
    INFRASTRUCTURE: "the state folder cannot be used, or a defect",
    INTERRUPTED: "interrupted",
}


COMMANDS: dict[str, CliCommand] = {
    "run": CliCommand(
        "commands.run:run",
        "Have a model do a task here, with the tools; its words on stdout, progress on stderr.",
        options.add_run_options,
        ("handrail run 'fix the failing test'", "handrail run 'review this' --json < changes.diff"),
        _EXITS
        | {
            OK: "done",
            FAILED: "the model or the loop failed, or there is no such session",
            WAITING: "something waits for you; the session is kept",
            INFRASTRUCTURE: "the provider, the sandbox or the state folder cannot be used; the session is kept",
            LIMIT: "a limit ended it; the session is kept",
            INTERRUPTED: "interrupted; the session is kept",
        },
    ),
    "demo": CliCommand(
        "commands.demo:run",
        "See it at work without a key: a scripted model fixes a test in a temporary folder.",
        options.add_demo_options,
        ("handrail demo", "handrail demo --plain"),
        _EXITS | {FAILED: "something was not as it should be; it is named"},
    ),
    "mcp": CliCommand(
        "commands.mcp:run",
        "Be the tools of another program's agent: an MCP server over stdin and stdout.",
        options.add_mcp_options,
        ("handrail mcp --config claude-code", "handrail mcp --config claude-code --write"),
        _EXITS | {FAILED: "with --config: what is to be pasted by hand was printed"},
    ),
    "acp": CliCommand(
        "commands.acp:run",
        "Be the agent of an editor that speaks the Agent Client Protocol, over stdin and stdout.",
        options.add_acp_options,
        ("handrail acp --model anthropic:claude-sonnet-4-5", "handrail acp --mode auto --workspace ."),
        _EXITS,
    ),
    "call": CliCommand(
        "commands.call:run",
        "Run one tool call and print its result.",
        options.add_call_options,
        (
            """handrail call exec '{"command": "make test"}'""",
            "handrail call write - --mode auto --json < arguments.json",
        ),
        _EXITS
        | {
            FAILED: "the result is an error",
            WAITING: "needs permission; your files are untouched",
            LIMIT: "a limit ended it",
        },
    ),
    "approvals": CliCommand(
        "commands.approvals:run",
        "List what waits for your yes or your reply, and what you granted.",
        options.add_approvals_options,
        ("handrail approvals --watch", "handrail approvals allow 8f2"),
        _EXITS,
    ),
    "approvals allow": CliCommand(
        "commands.approvals:run_allow",
        "Say yes to a request: keep what was tried, or run it, and print the result.",
        options.add_approvals_allow_options,
        ("handrail approvals allow 8f2 --scope session", "handrail approvals allow 8f2 --output-only"),
        _EXITS
        | {FAILED: "nothing waits under this id, or the result is an error", WAITING: "more of its batch waits"}
        | {LIMIT: "a limit ended it"},
    ),
    "approvals deny": CliCommand(
        "commands.approvals:run_deny",
        "Say no to a request, and why.",
        options.add_approvals_deny_options,
        ("handrail approvals deny 8f2", "handrail approvals deny 8f2 --reason 'use the staging config'"),
        _EXITS | {FAILED: "nothing waits under this id", WAITING: "more of its batch waits"},
    ),
    "approvals reply": CliCommand(
        "commands.approvals:run_reply",
        "Reply to a question of the model; its session goes on with that.",
        options.add_approvals_reply_options,
        ("handrail approvals reply 8f2 1", "handrail approvals reply 8f2 only in the checkout"),
        _EXITS | {FAILED: "no question waits under this id"},
    ),
    "approvals show": CliCommand(
        "commands.approvals:run_show",
        "Show a request with its preview; changes nothing.",
        options.add_approvals_show_options,
        ("handrail approvals show 8f2 --diff", "handrail approvals show 8f2 --output --json"),
        _EXITS | {FAILED: "nothing waits under this id"},
    ),
    "approvals retry": CliCommand(
        "commands.approvals:run_retry",
        "Try the command of a request again in a copy, or another one in its place.",
        options.add_approvals_retry_options,
        ("handrail approvals retry 8f2", "handrail approvals retry 8f2 --command 'make -n'"),
        _EXITS
        | {FAILED: "nothing waits under this id, or policy refuses it", WAITING: "tried; it waits for an answer"},
    ),
    "approvals revoke": CliCommand(
        "commands.approvals:run_revoke",
        "Take back what you granted: a class of commands, or an opened folder.",
        options.add_approvals_revoke_options,
        ("handrail approvals revoke 1c9", "handrail approvals revoke /data/shared"),
        _EXITS | {FAILED: "nothing is granted under this id"},
    ),
    "tools": CliCommand(
        "commands.tools:run",
        "List the tools that are offered.",
        options.add_tools_options,
        ("handrail tools", "handrail tools --openai > tools.json"),
        _EXITS,
    ),
    "skills": CliCommand(
        "commands.skills:run",
        "List the skills that are found here, and what they leave of the tools.",
        options.add_skills_options,
        ("handrail skills", "handrail skills show commit"),
        _EXITS,
    ),
    "skills show": CliCommand(
        "commands.skills:run_show",
        "Show how a skill is understood: its tools, its rules, what it says; changes nothing.",
        options.add_skills_show_options,
        ("handrail skills show commit", "handrail skills show commit --json | jq .skill.allowedTools"),
        _EXITS | {FAILED: "there is no such skill, or it cannot be used"},
    ),
    "schema": CliCommand(
        "commands.tools:run_schema",
        "Print the JSON Schema of everything on the wire.",
        options.add_schema_options,
        ("handrail schema | jq .types.tool_result", "handrail schema --out schemas"),
        _EXITS,
    ),
    "log": CliCommand(
        "commands.log:run",
        "Show what happened in a session, the last events last.",
        options.add_log_options,
        ("handrail log --changes", "handrail log --line src/a.py:41"),
        _EXITS | {FAILED: "there is no such session, file or line"},
    ),
    "log export": CliCommand(
        "commands.log:run_export",
        "Copy the events of a session to JSONL files, one a day.",
        options.add_log_export_options,
        ("handrail log export cli", "handrail log export cli --out /tmp/logs"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "sessions": CliCommand(
        "commands.sessions:run",
        "List stored sessions with their state and size.",
        options.add_sessions_options,
        ("handrail sessions", "handrail sessions --all --json"),
        _EXITS,
    ),
    "sessions remove": CliCommand(
        "commands.sessions:run_remove",
        "Remove a session with its journal, files and stored outputs.",
        options.add_sessions_remove_options,
        ("handrail sessions remove s-7fq", "handrail sessions remove --older-than 90d --all"),
        _EXITS | {FAILED: "there is no such session, or it is in use; nothing was removed"},
    ),
    "replay": CliCommand(
        "commands.replay:run",
        "Play a recorded session again on a copy of the workspace as it was, and compare every result.",
        options.add_replay_options,
        ("handrail replay cli", "handrail replay cli --json | jq '.calls[] | select(.verdict == \"differs\")'"),
        _EXITS | {FAILED: "a result differs, or there is no such session"},
    ),
    "diff": CliCommand(
        "commands.changes:run_diff",
        "Show what a change did to files.",
        options.add_diff_options,
        ("handrail diff --turn", "handrail diff 14 > change.patch"),
        _EXITS | {FAILED: "there is no such change"},
    ),
    "undo": CliCommand(
        "commands.changes:run_undo",
        "Take back the last change in this workspace, or another; what changed since stays.",
        options.add_undo_options,
        ("handrail undo", "handrail undo 14 --with-later"),
        _EXITS | {FAILED: "refused; nothing was changed"},
    ),
    "redo": CliCommand(
        "commands.changes:run_redo",
        "Take back the last undo.",
        options.add_redo_options,
        ("handrail redo", "handrail redo --json"),
        _EXITS | {FAILED: "refused; nothing was changed"},
    ),
    "processes": CliCommand(
        "commands.processes:run",
        "List the commands that go on in the background, and those that did.",
        options.add_processes_options,
        ("handrail processes --all", "handrail processes stop p-7fq"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "processes log": CliCommand(
        "commands.processes:run_log",
        "Print what a background command has printed.",
        options.add_processes_log_options,
        ("handrail processes log p-7fq --follow", "handrail processes log p-7fq --raw > server.log"),
        _EXITS | {FAILED: "there is no such process session"},
    ),
    "processes write": CliCommand(
        "commands.processes:run_write",
        "Write a line to the input of a background command.",
        options.add_processes_write_options,
        ("handrail processes write p-7fq yes", "handrail processes write p-7fq - --eof < answers.txt"),
        _EXITS | {FAILED: "there is no such process session, or it has ended"},
    ),
    "processes forward": CliCommand(
        "commands.processes:run_forward",
        "Open a port of a background command on this machine, until Ctrl-C.",
        options.add_processes_forward_options,
        ("handrail processes forward p-7fq 8000", "handrail processes forward p-7fq 80 --to 8080"),
        _EXITS
        | {
            OK: "the background command has ended",
            FAILED: "there is no such process session, it cannot be reached, or the port here is taken",
        },
    ),
    "processes stop": CliCommand(
        "commands.processes:run_stop",
        "End a background command with all that it started; its log stays.",
        options.add_processes_stop_options,
        ("handrail processes stop p-7fq", "handrail processes stop --all"),
        _EXITS | {FAILED: "there is no such process session, or it could not be ended"},
    ),
    "processes remove": CliCommand(
        "commands.processes:run_remove",
        "End a background command where it runs, and forget it with its log.",
        options.add_processes_remove_options,
        ("handrail processes remove p-7fq", "handrail processes remove p-7fq --json"),
        _EXITS | {FAILED: "there is no such process session"},
    ),
    "memory": CliCommand(
        "commands.memory:run",
        "List the notes that models made about this workspace.",
        options.add_memory_options,
        ("handrail memory", "handrail memory --json | jq '.notes[].title'"),
        _EXITS,
    ),
    "memory show": CliCommand(
        "commands.memory:run_show",
        "Print a note.",
        options.add_one_note_options,
        ("handrail memory show m-7fq2k", "handrail memory show m-7f --json"),
        _EXITS | {FAILED: "there is no such note"},
    ),
    "memory remove": CliCommand(
        "commands.memory:run_remove",
        "Remove a note: no later session reads it.",
        options.add_one_note_options,
        ("handrail memory remove m-7fq2k", "handrail memory remove m-7f --json"),
        _EXITS | {FAILED: "there is no such note, or it could not be removed"},
    ),
    "audit": CliCommand(
        "commands.audit:run",
        "Show the last records of the audit.",
        options.add_audit_options,
        ("handrail audit --limit 50", "handrail audit --json | jq '.records[].rule'"),
        _EXITS,
    ),
    "audit verify": CliCommand(
        "commands.audit:run_verify",
        "Check that no record of the audit was changed, removed or inserted.",
        options.add_json_option,
        ("handrail audit verify", "handrail audit verify --json | jq .intact"),
        _EXITS | {FAILED: "the audit is broken"},
    ),
    "policy explain": CliCommand(
        "commands.policy:run_explain",
        "Say what policy decides about a command or a tool call, and why; nothing is run.",
        options.add_policy_explain_options,
        (
            "handrail policy explain -- 'cd api && rm -rf build | tee log'",
            """handrail policy explain --tool write --args '{"path": "a", "content": ""}' --json""",
        ),
        _EXITS
        | {
            USAGE: "wrong usage or settings, or a call that is wrong before policy is asked",
            FAILED: "with --exit-code: deny",
            WAITING: "with --exit-code: confirm",
        },
        takes_rest=True,
    ),
    "policy modes": CliCommand(
        "commands.policy:run_modes",
        "Show what each mode says where no rule does.",
        options.add_json_option,
        ("handrail policy modes", "handrail policy modes --json | jq .table.write"),
        _EXITS,
    ),
    "policy test": CliCommand(
        "commands.policy:run_test",
        "Check the examples of the rules in force and of the built-in tables.",
        options.add_policy_test_options,
        ("handrail policy test", "handrail policy test --workspace . --json"),
        _EXITS | {FAILED: "an example does not come out as its rule says"},
    ),
    "policy replay": CliCommand(
        "commands.policy:run_replay",
        "Judge the calls of before under the rules of today, from the facts that were recorded.",
        options.add_policy_replay_options,
        ("handrail policy replay --since 7d", "handrail policy replay --session cli --mode auto --json"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "doctor": CliCommand(
        "commands.doctor:run",
        "Check what handrail needs here; changes nothing.",
        options.add_json_option,
        ("handrail doctor", "handrail doctor --json"),
        _EXITS | {FAILED: "something does not work"},
    ),
    "config": CliCommand(
        "commands.config:run",
        "Show every setting and rule, and where it comes from.",
        options.add_config_options,
        ("handrail config", "handrail config --schema > .handrail.schema.json"),
        _EXITS,
    ),
    "trust": CliCommand(
        "commands.trust:run",
        "Let a project loosen the settings (handrail.toml) and bring servers (.mcp.json), exactly as they are now.",
        options.add_trust_options,
        ("handrail trust", "handrail trust --list"),
        _EXITS,
    ),
}


# § [cli.help_layout] How a help is laid out: in lines that the terminal need not break.


class Formatter(RawDescriptionHelpFormatter):
    """How argparse lays a help out, with names left whole."""

    def __init__(self, prog: str) -> None:
        # Left to itself, the formatter imports shutil to measure the terminal, even when no help is printed.
        super().__init__(prog, width=measure_help_width(), max_help_position=28)

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap  # noqa: PLC0415  as argparse has it

        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


def format_hanging(head: str, text: str) -> str:
    """The text behind its head, in lines that the terminal need not break. No name is broken at its hyphen."""
    lines, width = [head], measure_help_width()
    for word in text.split():
        if len(lines[-1]) + len(word) > width and lines[-1].strip():
            lines.append(" " * len(head))
        lines[-1] += f"{word} "
    return "\n".join(line.rstrip() for line in lines)


def measure_help_width() -> int:
    """How wide a help is."""
    try:
        return max(60, min(120, int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)))
    except (OSError, ValueError):
        return 80


# § [cli.arguments] Understands the words of a command line, and words the help.

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
