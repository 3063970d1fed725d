"""handrail code: the tools for files of code as commands for people, whether or not the settings enable them."""

from functools import partial
from types import SimpleNamespace

from handrail.cli.commands.call import CALL_EXITS, run_tool
from handrail.cli.commands.shortcuts import add_arguments, build_arguments
from handrail.cli.parser import Command


def _run(tool: str, options: SimpleNamespace) -> int:
    return run_tool(options, tool, build_arguments(tool, options), enable=True)


def _build_command(tool: str, *examples: *tuple[str, str]) -> Command:
    return Command(partial(_run, tool), partial(add_arguments, tool), examples, CALL_EXITS)


COMMANDS = {
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
    "code lint": _build_command("code_lint", "handrail code lint src", "handrail code lint a.py b.ts --linter ruff"),
    "code format": _build_command(
        "code_format", "handrail code format src/app.py", "handrail code format src/app.py --write"
    ),
}
