"""handrail code: the tools for files of code as commands for people, whether or not the settings enable them."""

from argparse import ArgumentParser
from functools import partial
from types import SimpleNamespace
from typing import Any

from handrail.cli.commands.call import CALL_EXITS, add_call_options, run_tool
from handrail.cli.commands.shortcuts import add_arguments, build_arguments
from handrail.cli.exits import FAILED
from handrail.cli.parser import Command


def _run(tool: str, finds: str, options: SimpleNamespace) -> int:
    return run_tool(options, tool, build_arguments(tool, options), enable=True, finds=finds)


def _build_command(tool: str, *examples: *tuple[str, str], finds: str = "") -> Command:
    exits = {**CALL_EXITS, FAILED: f"there are {finds}, or the result is an error"} if finds else CALL_EXITS
    return Command(partial(_run, tool, finds), partial(add_arguments, tool), examples, exits)


def _run_search(options: SimpleNamespace) -> int:
    arguments: dict[str, Any] = {"query": options.query, "paths": options.paths}
    if options.max_results is not None:
        arguments["maxResults"] = options.max_results
    return run_tool(options, "codebase_search", arguments, enable=True)


def _add_search_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="the subject of the code, in words or names of the code")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="search in these files and folders")
    parser.add_argument("--max-results", metavar="N", type=int, help="print at most N results (10)")
    add_call_options(parser)


COMMANDS = {
    "code search": Command(
        _run_search,
        _add_search_arguments,
        (
            "handrail code search 'parse the settings file'",
            "handrail code search 'retry a request' src --max-results 3",
        ),
        CALL_EXITS,
    ),
    "code outline": _build_command(
        "code_outline", "handrail code outline src/app.py", "handrail code outline README.md --json"
    ),
    "code symbols": _build_command(
        "code_symbols",
        "handrail code symbols src/app.py --kind class",
        "handrail code symbols src/app.py --pattern '^test_'",
    ),
    "code analyze": _build_command(
        "code_analyze", "handrail code analyze src/app.py", "handrail code analyze src/app.py --json"
    ),
    "code lint": _build_command(
        "code_lint", "handrail code lint src", "handrail code lint a.py b.ts --linter ruff", finds="findings"
    ),
    "code format": _build_command(
        "code_format", "handrail code format src/app.py", "handrail code format src/app.py --write"
    ),
}
