"""The result of a command."""

import signal
from collections.abc import Mapping
from typing import Literal

import msgspec

Ending = Literal["exit", "timeout", "cancelled", "memory", "processes", "disk", "failed"]
"""`exit`: it ended by itself or by a foreign signal. `failed`: it never ran, as the sandbox could not be made."""


class CapturedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The output of one pipe: everything in `head`, or its beginning and its end."""

    head: bytes
    tail: bytes = b""
    """The end, if memory does not hold everything. It does not overlap with `head`."""
    total: int
    """Bytes that were printed."""
    spilled: str | None = None
    """A file with the first `spilled_bytes`. The owner of this object removes or stores it."""
    spilled_bytes: int = 0
    lost: int = 0
    """Bytes that are in none of these."""


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """A command that has ended with everything it started."""

    ending: Ending
    exit_code: int | None
    """As in a shell: above 128 for a signal. None: it was stopped, or never ran."""
    seconds: float
    output: CapturedOutput
    """Both streams in order. With two pipes: stdout."""
    errors: CapturedOutput | None = None
    """stderr, if it has a pipe of its own."""
    limits: tuple[str, ...] = ()
    """The limits that fired: time, output, memory, processes, disk, file size."""
    warnings: tuple[str, ...] = ()
    tried_network: bool | None = None
    """Whether it tried a connection that its network has no route for. None: not known."""


_SEARCH = {1: "No line matched.", 2: "An error: a bad pattern, or a file that could not be read."}
_COMPARE = {1: "The inputs differ.", 2: "An error: an input could not be compared."}
_TEST = {1: "The condition is false.", 2: "The condition is not valid."}
_FIND = {1: "Nothing was found."}
_LOOK_UP = {1: "There is no such command."}
_SSH = {255: "The connection failed."}
_PYTEST = {
    1: "Some tests failed.",
    2: "The run was interrupted, or tests could not be collected.",
    3: "An internal error of pytest.",
    4: "pytest was called wrongly.",
    5: "No tests were collected.",
}

_MEANINGS: Mapping[str, Mapping[int, str]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"), _SEARCH),
    "git grep": {1: "No line matched."},
    **dict.fromkeys(("diff", "cmp", "diff3", "sdiff", "zdiff", "zcmp"), _COMPARE),
    "git diff": {1: "There are differences, or the check found problems.", 128: "git could not do it."},
    "git": {128: "git could not do it.", 129: "git was called wrongly."},
    **dict.fromkeys(("test", "[", "[["), _TEST),
    **dict.fromkeys(("pytest", "py.test"), _PYTEST),
    "find": {1: "Some folders or files could not be read."},
    **dict.fromkeys(("fd", "fdfind", "pgrep", "pidof"), _FIND),
    **dict.fromkeys(("which", "type", "command", "hash"), _LOOK_UP),
    "curl": {3: "The URL is malformed.", 6: "The host's name could not be resolved.",
             7: "The host could not be reached.", 22: "The server answered with an HTTP error.",
             23: "What was received could not be written.", 28: "It took too long.",
             35: "The TLS connection failed.", 52: "The server answered nothing.", 56: "Receiving failed.",
             60: "The server's certificate could not be verified."},
    "wget": {3: "A file could not be read or written.", 4: "The network failed.",
             5: "The server's certificate could not be verified.", 8: "The server answered with an error."},
    "make": {1: "Something is not up to date (asked with -q).", 2: "A recipe failed, or the makefile is wrong."},
    "timeout": {124: "It took too long and was ended.", 125: "timeout itself failed."},
    "expr": {1: "The result is empty or 0.", 2: "The expression is not valid."},
    **dict.fromkeys(("ssh", "scp", "sftp"), _SSH),
    "rsync": {11: "A file could not be read or written.", 12: "The connection broke.",
              23: "Some files were not transferred.", 24: "Some files vanished meanwhile."},
    "ls": {1: "Some entries could not be read.", 2: "The named file could not be read."},
    "jq": {1: "The last result is false or null.", 2: "A file could not be read.", 3: "The filter is not valid.",
           4: "There was no result.", 5: "An error in the filter or its input."},
    "xargs": {123: "One of the commands failed.", 124: "One of the commands ended with 255.",
              125: "One of the commands was killed by a signal."},
    "patch": {1: "Some hunks could not be applied.", 2: "The patch could not be read or applied."},
    "mypy": {1: "Problems were found.", 2: "mypy itself failed."},
    "pyright": {1: "Problems were found.", 2: "pyright itself failed.", 3: "Its configuration is wrong."},
    "ruff": {1: "Problems were found.", 2: "ruff itself failed."},
    "flake8": {1: "Problems were found."},
    "black": {1: "Files would be changed.", 123: "black itself failed."},
    "eslint": {1: "Problems were found.", 2: "eslint itself failed."},
    "tsc": {1: "Problems were found; nothing was written.", 2: "Problems were found; files were written."},
    "cargo": {101: "It failed: the build, a test, or a panic."},
    "go": {1: "It failed: the build or a test.", 2: "go was called wrongly, or the program panicked."},
    "shellcheck": {1: "Problems were found.", 2: "Some files could not be read."},
    "systemctl": {3: "The unit is not active.", 4: "There is no such unit."},
    "gzip": {2: "A warning."},
    "tar": {1: "Some files differ or changed meanwhile.", 2: "It failed."},
}  # fmt: skip

_GENERAL_MEANINGS: Mapping[int, str] = {
    126: "The command was found and could not be run: not executable, or not allowed.",
    127: "The command was not found.",
}


def describe_exit_code(program: str | None, exit_code: int) -> str | None:
    """The meaning of an exit code in one sentence. None: it only means failure."""
    name = find_exit_signal(exit_code)
    killed = f"It was killed by the signal {name}." if name else None
    return _find_meaning(program, exit_code) or _GENERAL_MEANINGS.get(exit_code) or killed


def find_exit_signal(exit_code: int, program: str | None = None) -> str | None:
    """The name of the signal behind a shell's exit code. None: the program gives the code another meaning."""
    if _find_meaning(program, exit_code):
        return None
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return None


def _find_meaning(program: str | None, exit_code: int) -> str | None:
    """The program's own meaning, found under its full name, its Python module, or its first word."""
    first, _, rest = (program or "").partition(" ")
    module = rest.removeprefix("-m ") if first.startswith("python") else ""
    meanings = (_MEANINGS.get(name, {}).get(exit_code) for name in (program or "", module, first))
    meaning = next(filter(None, meanings), None)
    if meaning and module and exit_code == 1:
        return f"{meaning.removesuffix('.')}, or Python has no module {module}."
    return meaning
