"""The command `handrail`: finds the command, runs it, and turns whatever it ends in into an exit code."""

import gc
import sys
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module

from handrail.cli.arguments import is_group, parse, render_overview, split
from handrail.cli.commands import COMMANDS
from handrail.cli.exits import INFRASTRUCTURE, INTERRUPTED, OK, USAGE, CommandFailed
from handrail.cli.leaving import exit_fast
from handrail.cli.output import hide_notes, print_out, warn
from handrail.cli.sparing import import_msgspec_fast
from handrail.protocol.version import VERSION


def main() -> int:
    """The console script."""
    if sys.platform == "win32":
        warn("handrail: Windows is not supported; use Linux, macOS or the Windows Subsystem for Linux")
        return INFRASTRUCTURE
    return exit_fast(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Runs the command that the words say; the exit code."""
    try:
        return _run(words)
    except KeyboardInterrupt:
        warn("handrail: interrupted")
        return INTERRUPTED
    except CommandFailed as stop:
        warn(f"handrail: {stop}")
        return stop.code
    except (Exception, SystemExit) as error:  # SystemExit: from a custom tool
        return _explained(error, words)


def _run(words: list[str]) -> int:
    group = words[0] if words and is_group(words[0]) else ""
    asked = words[bool(group) :]
    if not asked:
        warn(render_overview(group).rstrip())
        return USAGE
    if asked[0] in {"--help", "-h"}:
        print_out(render_overview(group))
        return OK
    if words[0] == "--version":
        print_out(f"handrail {VERSION}\n")
        return OK
    name, rest = split(words)
    options = parse(name, rest)
    if options is None:
        return OK
    with hide_notes(options.quiet):
        return _load(COMMANDS[name].module)(options)


def _load(module: str) -> Callable[[Namespace], int]:
    """The command's function. What is imported now stays until the end, so nothing looks through it for garbage. What
    comes later is looked at less often than Python would: much of it is imports too, and the rest has few cycles. That
    is 1.5 of the 70 ms of `handrail call`."""
    gc.disable()
    import_msgspec_fast()
    run_command: Callable[[Namespace], int] = import_module(f"handrail.cli.{module}").run
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()
    return run_command


def _explained(error: BaseException, words: list[str]) -> int:
    """The exit for an error that handrail raises on purpose, or for a defect."""
    from handrail.cli.failure import explain  # noqa: PLC0415  it costs an import, and mostly nothing fails

    return explain(error, traceback="-vv" in words or words.count("-v") > 1)
