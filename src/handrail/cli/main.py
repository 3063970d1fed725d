"""The command `handrail`: from the words of a command line to its exit code."""

import atexit
import gc
import os
import sys

from handrail.cli.exits import INFRASTRUCTURE, INTERRUPTED, OK, USAGE, CommandFailed
from handrail.cli.output import hide_notes, print_out, warn
from handrail.cli.parser import Command, is_group, load_command, parse_plain, split_command
from handrail.protocol.version import VERSION


def main() -> int:
    """The console script."""
    if sys.platform == "win32":
        warn("handrail: Windows is not supported; use Linux, macOS or the Windows Subsystem for Linux")
        return INFRASTRUCTURE
    return _exit_fast(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Runs a command line. Returns the exit code."""
    try:
        return _run(words)
    except KeyboardInterrupt:
        warn("handrail: interrupted")
        return INTERRUPTED
    except CommandFailed as failure:
        warn(f"handrail: {failure}")
        return failure.code
    except (Exception, SystemExit) as error:  # SystemExit: from a custom tool
        return _explain(error, traceback="-vv" in words or words.count("-v") > 1)


def _run(words: list[str]) -> int:
    if words and words[0] == "help":
        words = [word for word in words[1:] if word not in {"-h", "--help"}] + ["--help"]
    group = words[0] if words and is_group(words[0]) else ""
    rest = words[bool(group) :]
    if not rest:
        warn(_load_usage().render_overview(group).rstrip())
        return USAGE
    if rest[0] in {"--help", "-h"}:
        print_out(_load_usage().render_overview(group))
        return OK
    if words[0] in {"--version", "version"}:
        print_out(f"handrail {VERSION}\n")
        return OK
    name, arguments = split_command(words)
    command = _load(name)
    options = parse_plain(command, arguments) or _load_usage().parse_arguments(name, arguments, command)
    if options is None:
        return OK
    with hide_notes(options.quiet):
        return command.run(options)


def _load(name: str) -> Command:
    """Imports a command without garbage collection, which would find nothing. Later it runs less often than usual."""
    gc.disable()
    _import_msgspec_fast()
    command = load_command(name)
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()
    return command


def _load_usage():  # the type is that of the module
    from handrail.cli import usage  # noqa: PLC0415  loads argparse, which most command lines do not need

    return usage


def _import_msgspec_fast() -> None:
    """Imports msgspec without typing_extensions, which it does not need since Python 3.11.

    If it is installed, it imports inspect, ast and dis: a sixth of the time of `handrail call`. It can be imported
    later.
    """
    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # pyright: ignore[reportArgumentType]  makes an import of it fail
    try:
        import msgspec  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]
    finally:
        del sys.modules["typing_extensions"]


def _explain(error: BaseException, *, traceback: bool) -> int:
    """Prints an error. Returns the exit code."""
    from handrail.protocol.errors import HandrailError, StoreError  # noqa: PLC0415  most commands do not fail

    if isinstance(error, HandrailError):
        warn(f"handrail: {error}")
        return INFRASTRUCTURE if isinstance(error, StoreError) else USAGE
    if isinstance(error, OSError) and error.filename:
        warn(f"handrail: {error.filename} cannot be used: {error.strerror}")
        return INFRASTRUCTURE
    import traceback as tracebacks  # noqa: PLC0415  only for a defect

    from handrail.state import report_defect  # noqa: PLC0415

    if traceback:
        # Without the text of the error, which may quote a file or an argument.
        warn("".join(tracebacks.format_tb(error.__traceback__)).rstrip())
    warn(f"handrail: a defect stopped the command {report_defect(error)}")
    return INFRASTRUCTURE


def _exit_fast(code: int) -> int:
    """Ends the process without the clean-up of Python, which takes 5 of the 70 ms of `handrail call`.

    Returns the code instead if other threads run, or if the process is traced or profiled.
    """
    threading = sys.modules.get("threading")
    has_threads = threading is not None and threading.active_count() > 1
    if has_threads or sys.getprofile() or sys.gettrace() or sys.flags.dev_mode:
        return code
    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  there is no other way to run them
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # pyright: ignore[reportUnnecessaryComparison]  closed by the caller
                stream.flush()
    except (OSError, ValueError):
        return code  # Python reports it
    os._exit(code)
