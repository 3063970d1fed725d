"""Every command on one page: its module, what it does, its arguments, two examples, what its exit says.

A command's module is imported when the command is run, not before: help and wrong usage cost next to nothing.
"""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import NamedTuple

from handrail.cli.exits import FAILED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, USAGE, WAITING


class Command(NamedTuple):
    """One command; `module` has `run(options) -> int`."""

    module: str
    sentence: str
    arguments: Callable[[ArgumentParser], None]
    examples: tuple[str, str]
    exits: dict[int, str]


_EXITS = {
    OK: "ok",
    USAGE: "wrong usage or settings; nothing was run",
    INFRASTRUCTURE: "the state folder cannot be used, or a defect",
    INTERRUPTED: "interrupted",
}


def _call(parser: ArgumentParser) -> None:
    parser.add_argument("tool", metavar="NAME", help="the tool")
    parser.add_argument("arguments", metavar="JSON", help="its arguments, one JSON object; - reads it from stdin")
    parser.add_argument("--mode", choices=("plan", "ask", "auto", "full"), help="how much runs unasked")
    _workspace(parser)
    _session(parser)
    parser.add_argument("--unattended", action="store_true", help="refuse what would ask (as when CI is set)")
    _json(parser, "print the whole result")


def _tools(parser: ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the descriptions with their schemas")
    form.add_argument("--openai", action="store_true", help="as a tool list for OpenAI")
    form.add_argument("--anthropic", action="store_true", help="as a tool list for Anthropic")


def _schema(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", help="write one file a schema, and samples, into this folder")


def _log(parser: ArgumentParser) -> None:
    _workspace(parser)
    _session(parser)
    parser.add_argument("--after", metavar="SEQ", type=_number, help="only events after this number, oldest first")
    parser.add_argument("--limit", metavar="N", type=_number, default=100, help="at most so many (100)")
    parser.add_argument("--sessions", action="store_true", help="list the sessions of the workspace instead")
    _json(parser)


def _log_export(parser: ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="the id of the session")
    parser.add_argument("--out", metavar="DIR", default=".tasklogs", help="where to (.tasklogs)")
    _workspace(parser)
    _json(parser)


def _audit(parser: ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=_number, default=20, help="at most so many (20)")
    _json(parser)


def _json(parser: ArgumentParser, text: str = "print one JSON object") -> None:
    parser.add_argument("--json", action="store_true", help=text)


def _config(parser: ArgumentParser) -> None:
    parser.add_argument("--schema", action="store_true", help="the JSON Schema of the settings file")
    _json(parser)


def _workspace(parser: ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="DIR", help="the folder to work in (the current folder)")


def _session(parser: ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", default="cli", help="the session (cli)")


def _number(text: str) -> int:
    """argparse words what is no whole number from 0."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ValueError(text)
    return int(text)


_number.__name__ = "whole number"

COMMANDS: dict[str, Command] = {
    "call": Command(
        "call",
        "Run one tool call and print its result.",
        _call,
        (
            """handrail call read '{"path": "README.md"}'""",
            "handrail call write - --mode auto --json < arguments.json",
        ),
        _EXITS
        | {FAILED: "the result is an error", WAITING: "needs permission; nothing was run", LIMIT: "a limit ended it"},
    ),
    "tools": Command(
        "tools",
        "List the tools that are offered.",
        _tools,
        ("handrail tools", "handrail tools --openai > tools.json"),
        _EXITS,
    ),
    "schema": Command(
        "schema",
        "Print the JSON Schema of everything on the wire.",
        _schema,
        ("handrail schema | jq .types.tool_result", "handrail schema --out schemas"),
        _EXITS,
    ),
    "log": Command(
        "log",
        "Show what happened in a session, the last events last.",
        _log,
        ("handrail log --limit 20", "handrail log --sessions"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "log export": Command(
        "log_export",
        "Copy the events of a session to JSONL files, one a day.",
        _log_export,
        ("handrail log export cli", "handrail log export cli --out /tmp/logs"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "audit": Command(
        "audit",
        "Show the last records of the audit.",
        _audit,
        ("handrail audit --limit 50", "handrail audit --json | jq '.records[].rule'"),
        _EXITS,
    ),
    "audit verify": Command(
        "audit_verify",
        "Check that no record of the audit was changed, removed or inserted.",
        _json,
        ("handrail audit verify", "handrail audit verify --json | jq .intact"),
        _EXITS | {FAILED: "the audit is broken"},
    ),
    "doctor": Command(
        "doctor",
        "Check what handrail needs here; changes nothing.",
        _json,
        ("handrail doctor", "handrail doctor --json"),
        _EXITS | {FAILED: "something does not work"},
    ),
    "config": Command(
        "config",
        "Show every setting, its value and where it comes from.",
        _config,
        ("handrail config", "handrail config --schema > .handrail.schema.json"),
        _EXITS,
    ),
}
