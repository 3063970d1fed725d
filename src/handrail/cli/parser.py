"""The table of commands with the arguments that they share."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from handrail.cli.exits import CommandFailed
from handrail.protocol.text import find_similar, render_value

if TYPE_CHECKING:
    from argparse import ArgumentParser

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Run a model on a task in this folder."),
    "chat": ("chat", "Start an interactive session in this folder."),
    "demo": ("demo", "Run a demo with a scripted model, without a key."),
    "mcp": ("mcp", "Run an MCP server with handrail's tools for another agent."),
    "acp": ("acp", "Run as an agent in editors with the Agent Client Protocol."),
    "serve": ("serve", "Serve tasks and approvals over HTTP, with a web console."),
    "serve tokens": ("serve", "List, add or remove the named tokens of the server."),
    "call": ("call", "Run one tool call and print its result."),
    "exec": ("shortcuts", "Run a command in the sandbox; exits with its code."),
    "read": ("shortcuts", "Read a file, or a page of it."),
    "edit": ("shortcuts", "Replace a text in a file."),
    "write": ("shortcuts", "Write stdin to a file."),
    "grep": ("shortcuts", "Search files for a regular expression."),
    "find": ("shortcuts", "List files whose names match a glob."),
    "ls": ("shortcuts", "List a folder."),
    "code outline": ("code", "Outline a file: definitions with their lines."),
    "code symbols": ("code", "List the definitions in a file by kind and name."),
    "code analyze": ("code", "Show imports, functions, classes and complexity."),
    "code lint": ("code", "Check files with the linters of the project."),
    "code format": ("code", "Show how a file would be formatted, or format it."),
    "code search": ("code", "Search the code of this folder by its subject."),
    "approvals": ("approvals", "List requests, questions and grants."),
    "approvals allow": ("approvals", "Approve a request and print the result."),
    "approvals deny": ("approvals", "Deny a request, with a reason."),
    "approvals reply": ("approvals", "Reply to a question of the model."),
    "approvals show": ("approvals", "Show a request with its preview."),
    "approvals retry": ("approvals", "Run the preview of a request again, or another command."),
    "approvals clear": ("approvals", "Deny all waiting requests, or the old ones."),
    "approvals revoke": ("approvals", "Revoke a grant, or close an opened folder."),
    "tools": ("tools", "List the tools that are offered."),
    "skills": ("skills", "List skills and the tools each one may use."),
    "skills show": ("skills", "Show the tools, rules and text of a skill."),
    "schema": ("tools", "Print the JSON Schema of everything on the wire."),
    "log": ("log", "Show the transcript of a session: prompts, answers, calls."),
    "log export": ("log", "Export the events of a session to JSONL files."),
    "sessions": ("sessions", "List stored sessions with their state and size."),
    "sessions remove": ("sessions", "Remove a session with its journal and outputs."),
    "replay": ("replay", "Run a recorded session again in a copy and compare results."),
    "diff": ("changes", "Show the diff of a change."),
    "undo": ("changes", "Undo a change; later changes stay."),
    "redo": ("changes", "Undo the last undo."),
    "processes": ("processes", "List background processes, running and finished."),
    "processes log": ("processes", "Print the output of a background process."),
    "processes write": ("processes", "Write a line to the input of a background process."),
    "processes forward": ("processes", "Open a port of a background process until Ctrl-C."),
    "processes stop": ("processes", "Stop a background process; its log stays."),
    "processes remove": ("processes", "Stop a background process and remove its log."),
    "memory": ("memory", "List the notes that models made about this workspace."),
    "memory show": ("memory", "Print a note."),
    "memory remove": ("memory", "Remove a note."),
    "audit": ("audit", "Show the last records of the audit."),
    "audit verify": ("audit", "Check the hash chain of the audit."),
    "audit receipt": ("audit", "Print a receipt of a session, or write it signed."),
    "audit check-receipt": ("audit", "Check the signature of a receipt, and its audit records."),
    "policy explain": ("policy", "Show the decision about a command or a call."),
    "policy modes": ("policy", "Show the decisions of each mode."),
    "policy test": ("policy", "Check the examples of the rules and of the built-in tables."),
    "policy replay": ("policy", "Re-check past calls against the current rules."),
    "worker": ("fleet", "Run sessions of a shared database on this machine."),
    "fleet migrate": ("fleet", "Make or update the tables of a shared database."),
    "fleet run": ("fleet", "Give a session a prompt; a worker runs it."),
    "fleet status": ("fleet", "Show workers, sessions, requests and jobs."),
    "fleet log": ("fleet", "Print the events of a session as JSON lines."),
    "fleet approvals": ("fleet", "List the requests of all sessions that wait."),
    "fleet allow": ("fleet", "Approve a request; a worker continues the run."),
    "fleet deny": ("fleet", "Deny a request, with a reason."),
    "fleet reply": ("fleet", "Reply to a question of the model."),
    "fleet cancel": ("fleet", "Cancel the running turn of a session."),
    "fleet resume": ("fleet", "Continue a turn that failed."),
    "fleet verify": ("fleet", "Check the audit chains of sessions."),
    "fleet limits": ("fleet", "Show or set the limits of a tenant."),
    "doctor": ("doctor", "Check the installation and this machine."),
    "config": ("config", "Show every setting and rule, and where it comes from."),
    "completion": ("completion", "Print a script that completes commands in a shell."),
    "trust": ("trust", "Trust this project's current settings, servers and tools."),
}
"""The module in `handrail.cli.commands` of each command, with its line of help. The dictionary `COMMANDS` of the module
has the rest. A module is imported when one of its commands runs, or when its help is printed."""

_GROUPS = {
    "Use": "chat run demo exec read edit write grep find ls code call serve mcp acp worker fleet",
    "Review": "approvals log diff undo redo sessions replay processes memory audit",
    "Set up": "config trust doctor completion",
    "Inspect": "tools skills schema policy help version",
}
"""The first words of the commands, as `handrail --help` lists them."""
_WORDS = {
    "code": "Search, outline, analyze, lint and format code.",
    "fleet": "Run sessions on many machines over one database.",
    "policy": "Explain, test and replay what the policy decides.",
    "help": "Explain a command, or list all of them.",
    "version": "Print the version.",
}
"""Help for first words that are not in the table."""
_TOOLS = ("process", "apply_patch", "multi_edit", "delete", "codebase_search")


class Command:
    """A command, as its module declares it. No named tuple, which takes longer to define than to import."""

    def __init__(
        self,
        run: "Callable[[SimpleNamespace], int]",
        add_arguments: "Callable[[ArgumentParser], None]",
        examples: tuple[str, str],
        exits: "Mapping[int, str] | None" = None,
        takes_rest: bool = False,
    ) -> None:
        self.run = run
        """Returns the exit code."""
        self.add_arguments = add_arguments
        self.examples = examples
        self.exits: Mapping[int, str] = exits or {}
        """Exit codes beside the common ones, or with another meaning."""
        self.takes_rest = takes_rest
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
        unknown = f"there is no command {render_value(f'{first} {words[1]}')}.{_suggest_subcommand(first, words[1])}"
        raise CommandFailed(unknown)
    kind = "option" if first.startswith("-") else "command"
    raise CommandFailed(f"there is no {kind} {render_value(first)}.{_suggest_command(first)}")


def list_groups() -> dict[str, dict[str, str]]:
    """The first words of the commands with their lines of help, by the title of their group."""
    return {
        title: {word: COMMANDS[word][1] if word in COMMANDS else _WORDS[word] for word in words.split()}
        for title, words in _GROUPS.items()
    }


def is_group(word: str) -> bool:
    """Whether a word begins several commands and is no command itself."""
    return word not in COMMANDS and bool(list_subcommands(word))


class _PlainParser:
    """Takes the place of an ArgumentParser for words that argparse would only copy, because argparse loads slowly."""

    def __init__(self) -> None:
        self._positional: list[str] = []
        self._options: dict[str, tuple[str, str, Collection[str] | None]] = {}
        """The destination, action and choices of each option."""
        self._defaults: dict[str, Any] = {"rest": None}
        self._is_plain = True

    def add_argument(
        self, *names: str, dest: str = "", action: str = "store", default: Any = None, **rest: Any
    ) -> None:
        target = dest or names[-1].lstrip("-").replace("-", "_")
        is_option, is_typed = names[-1].startswith("-"), "type" in rest
        self._is_plain &= action in {"store", "store_true", "count"} and (is_option or not is_typed)
        may_be_missing = not is_option and rest.pop("nargs", "?") == "?"  # a missing word is left to argparse
        self._is_plain &= (is_option or may_be_missing) and rest.keys() <= {"metavar", "help", "choices", "type"}
        if is_option:
            self._options |= dict.fromkeys(() if is_typed else names, (target, action, rest.get("choices")))
            self._defaults[target] = False if action == "store_true" else default
        else:
            self._positional.append(target)
            self._is_plain &= "choices" not in rest

    def add_mutually_exclusive_group(self) -> SimpleNamespace:
        """A group whose options are left to argparse, as those with a type are."""
        return SimpleNamespace(add_argument=partial(self.add_argument, type=None))

    def set_defaults(self, **values: object) -> None:
        self._defaults |= values

    def parse(self, words: list[str]) -> SimpleNamespace | None:
        """Parses the words. None if one of them, or the parser, is not plain."""
        values, positional, left = dict(self._defaults), list[str](), iter(words)
        for word in left:
            if not word.startswith("-"):
                positional.append(word)
                continue
            target, action, choices = self._options.get(word, ("", "", None))
            if action == "store":
                values[target] = next(left, "-")
                if values[target].startswith("-") or (choices and values[target] not in choices):
                    return None
            elif action == "count":
                values[target] += 1
            elif action:
                values[target] = True
            else:
                return None
        if not self._is_plain or len(positional) != len(self._positional):
            return None
        return SimpleNamespace(**values, **dict(zip(self._positional, positional, strict=True)))


def parse_plain(command: Command, words: list[str]) -> SimpleNamespace | None:
    """Parses arguments without an error in them. None: `usage` has to parse them."""
    if command.takes_rest:
        return None
    parser: Any = _PlainParser()
    command.add_arguments(parser)
    add_common_options(parser)
    return parser.parse(words)


def add_json_option(parser: "ArgumentParser", help_text: str = "print one JSON object") -> None:
    parser.add_argument("--json", action="store_true", help=help_text)


def add_mode_option(parser: "ArgumentParser") -> None:
    parser.add_argument("--mode", choices=("plan", "ask", "auto", "full"), help="how much runs unasked")


def add_plain_option(parser: "ArgumentParser") -> None:
    parser.add_argument("--plain", action="store_true", help="no frames, no colour, one line a choice")


def add_workspace_option(
    parser: "ArgumentParser", help_text: str = "the folder to work in (the current folder)"
) -> None:
    parser.add_argument("--workspace", metavar="DIR", help=help_text)


def add_place_options(parser: "ArgumentParser") -> None:
    """Adds --workspace and --json."""
    add_workspace_option(parser)
    add_json_option(parser)


def add_session_options(parser: "ArgumentParser", **checks: Any) -> None:
    """The options of a session with a model. `checks`: of its id."""
    parser.add_argument("--model", metavar="NAME", help="provider and model, such as anthropic:… or ollama:…")
    add_mode_option(parser)
    add_workspace_option(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "-c", "--continue", dest="last", action="store_true", help="continue the workspace's last session"
    )
    which.add_argument("--resume", metavar="ID", help="continue this session (an id or its beginning)", **checks)
    which.add_argument("--fork", metavar="ID", help="begin a new session that starts as a copy of this one", **checks)
    which.add_argument("--session", metavar="ID", help="the session by this name, new or not (a new one)")


def add_common_options(parser: "ArgumentParser") -> None:
    """Adds the options of every command."""
    parser.add_argument("-q", "--quiet", action="store_true", help="no notes on stderr, only warnings and errors")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="print more; -vv: show tracebacks")


def _is_misnamed(name: str, words: list[str]) -> bool:
    """Whether the next word is meant as the second of a command: a command that has such takes no words itself."""
    return bool(list_subcommands(name)) and bool(words) and not words[0].startswith("-")


def list_subcommands(name: str) -> dict[str, str]:
    """The commands whose first word is this, with their lines of help."""
    return {other: text for other, (_, text) in COMMANDS.items() if other.startswith(f"{name} ")}


def _suggest_command(word: str) -> str:
    if word in _TOOLS:
        return f" {word} is a tool: handrail call {word} '{{…}}' (handrail tools --json has its arguments)."
    seconds = {name.partition(" ")[2]: name for name in reversed(COMMANDS) if " " in name}
    near = seconds.get(word) or find_similar(word.lower(), " ".join(_GROUPS.values()).split())
    near = near or seconds.get(find_similar(word.lower(), seconds))
    return f" Did you mean {near}?" if near else ""


def _suggest_subcommand(group: str, word: str) -> str:
    near = find_similar(word.lower(), [name.removeprefix(f"{group} ") for name in list_subcommands(group)])
    return f" Did you mean {group} {near}?" if near else ""
