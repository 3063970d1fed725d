"""The command `handrail`: from the words of a command line to its exit code."""

import _datetime  # pyright: ignore[reportMissingImports]
import atexit
import gc
import os
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

from handrail.cli.exits import INFRASTRUCTURE, INTERRUPTED, OK, USAGE, CommandFailed
from handrail.cli.output import hide_notes, print_error, print_out, warn
from handrail.cli.parser import COMMANDS, Command, is_group, load_command, parse_plain, split_command
from handrail.protocol.version import VERSION


def main() -> int:
    """The console script."""
    if sys.platform == "win32":
        print_error("Windows is not supported. Use Linux, macOS or the Windows Subsystem for Linux.")
        return INFRASTRUCTURE
    return _exit_fast(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Runs a command line. Returns the exit code."""
    try:
        return _run(words)
    except KeyboardInterrupt:
        print_error("interrupted", "handrail log")
        return INTERRUPTED
    except (Exception, SystemExit) as error:  # SystemExit: from a custom tool
        return _explain(error, words)


def _suggest_command(words: list[str], code: int) -> str:
    """The command after an error that names none."""
    if code == INFRASTRUCTURE:
        return "handrail doctor"
    name = next((name for count in (2, 1) if (name := " ".join(words[:count])) in COMMANDS or is_group(name)), "")
    return f"handrail help {name}".rstrip()


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
    """Imports msgspec without the modules that a call does not use.

    - typing_extensions, if it is installed, imports inspect, ast and dis: a sixth of the time of `handrail call`.
    - uuid asks platform for the name of the system, and platform compiles a dozen expressions.
    - msgspec.inspect and msgspec._json_schema make JSON schemas, with textwrap and its expressions.
    - datetime defines in Python first, and replaces it all by its C module, which stays in its place here.

    All others can be imported later.
    """
    absent: dict[str, Any] = {
        "typing_extensions": None,  # makes an import of it fail
        "platform": SimpleNamespace(system=lambda: os.uname().sysname),
        "msgspec.inspect": ModuleType("msgspec.inspect"),
        "msgspec._json_schema": SimpleNamespace(
            **{name: _build_later(name) for name in ("schema", "schema_components")}
        ),
    }
    if any(name in sys.modules for name in ("msgspec", "uuid", *absent)):
        return
    sys.modules.setdefault("datetime", _datetime)  # pyright: ignore[reportUnknownArgumentType]
    sys.modules.update(absent)
    try:
        import msgspec  # noqa: PLC0415
    finally:
        for name in absent:
            del sys.modules[name]
    msgspec.__dict__.pop("inspect", None)


def _build_later(name: str) -> Callable[..., Any]:
    """A function of msgspec._json_schema that imports it when it is called."""

    def build(*args: Any, **options: Any) -> Any:
        return getattr(import_module("msgspec._json_schema"), name)(*args, **options)

    return build


def _explain(error: BaseException, words: list[str]) -> int:
    """Prints an error. Returns the exit code."""
    from handrail.protocol.errors import HandrailError  # noqa: PLC0415  most commands do not fail

    if isinstance(error, (CommandFailed, HandrailError)):
        from handrail.cli.errors import describe_error  # noqa: PLC0415

        text, then, code = describe_error(error)
        print_error(text, then or _suggest_command(words, code))
        return code
    if isinstance(error, OSError) and error.filename:
        print_error(f"{error.filename} cannot be used: {error.strerror}", "handrail doctor")
        return INFRASTRUCTURE
    import traceback as tracebacks  # noqa: PLC0415  only for a defect

    from handrail.state import report_defect  # noqa: PLC0415

    if "-vv" in words or words.count("-v") > 1:
        # Without the text of the error, which may quote a file or an argument.
        warn("".join(tracebacks.format_tb(error.__traceback__)).rstrip())
    print_error(f"an internal error stopped the command {report_defect(error)}", "handrail doctor")
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
