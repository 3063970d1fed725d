"""`handrail code`: the tools that know code, for people."""

from argparse import ArgumentParser
from types import SimpleNamespace
from typing import Any

from handrail.cli.commands.call import CALL_EXITS, add_call_options, run_tool
from handrail.cli.parser import Command


def run_search(options: SimpleNamespace) -> int:
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
        run_search,
        _add_search_arguments,
        (
            "handrail code search 'parse the settings file'",
            "handrail code search 'retry a request' src --max-results 3",
        ),
        CALL_EXITS,
    ),
}
