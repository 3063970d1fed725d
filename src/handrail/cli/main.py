"""The command `handrail`."""

import atexit
import gc
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module

from handrail.cli.exits import INFRASTRUCTURE, INTERRUPTED, OK, USAGE, CommandFailed
from handrail.cli.output import hide_notes, print_out, warn
from handrail.cli.parser import COMMANDS, is_group, parse, render_overview, split
from handrail.protocol.version import VERSION

# § [cli.failure] What a person reads when a command fails: handrail's own errors in their words, a defect in one
# § line.


def explain(error: BaseException, *, traceback: bool) -> int:
    """Says what happened; the exit code."""
    from handrail.protocol.errors import HandrailError, StoreError  # noqa: PLC0415  mostly nothing fails

    if isinstance(error, HandrailError):
        warn(f"handrail: {error}")
        return INFRASTRUCTURE if isinstance(error, StoreError) else USAGE
    if isinstance(error, OSError) and error.filename:
        warn(f"handrail: {error.filename} cannot be used: {error.strerror}")
        return INFRASTRUCTURE
    from handrail.runtime.execute import list_frames, report_defect  # noqa: PLC0415  only for a defect

    if traceback:
        import traceback as tracebacks  # noqa: PLC0415  only for a defect

        # Without the error's own text, which may quote a file or an argument.
        warn("".join(tracebacks.format_tb(error.__traceback__)).rstrip())
    warn(
        f"handrail: a defect stopped the command ({type(error).__name__} at {list_frames(error)[-1]})."
        f" {report_defect(error)}"
    )
    return INFRASTRUCTURE


# § [cli.leaving] The end of the process.


def exit_fast(code: int) -> int:
    """Ends the process with an exit code, without Python taking apart all that was imported: nobody uses it any more,
    and that takes 5 of the 70 ms of `handrail call`.

    Where other threads are at work, or somebody measures or traces this one, the code is returned: the end is Python's.
    """
    if _others_are_at_work() or sys.getprofile() or sys.gettrace() or sys.flags.dev_mode:
        return code
    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  there is no other way to run them
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # pyright: ignore[reportUnnecessaryComparison]  closed by whoever started us
                stream.flush()
    except (OSError, ValueError):
        return code  # Python has its own word for that
    os._exit(code)


def _others_are_at_work() -> bool:
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


# § [cli.sparing] Keeps from being loaded what only looks needed.


def import_msgspec_fast() -> None:
    """Loads it without typing_extensions, which it asks for and can do without: since Python 3.11 typing has the same.
    Where that is installed, and all that talks to models or to other servers brings it, it loads inspect, ast and dis:
    a sixth of what `handrail call` takes. Whoever asks for it afterwards gets it."""
    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # pyright: ignore[reportArgumentType]  how Python says that there is none
    try:
        import msgspec  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]  this is the moment
    finally:
        del sys.modules["typing_extensions"]


# § [cli.main] The command `handrail`: finds the command, runs it, and turns whatever it ends in into an exit code.


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
        return explain(error, traceback="-vv" in words or words.count("-v") > 1)


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
        return _load(*COMMANDS[name].function.split(":"))(options)


def _load(module: str, function: str) -> Callable[[Namespace], int]:
    """The command's function. What is imported now stays until the end, so nothing looks through it for garbage. What
    comes later is looked at less often than Python would: much of it is imports too, and the rest has few cycles. That
    is 1.5 of the 70 ms of `handrail call`."""
    gc.disable()
    import_msgspec_fast()
    run_command: Callable[[Namespace], int] = getattr(import_module(f"handrail.cli.{module}"), function)
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()
    return run_command
