"""The program that makes tier 2: where it is and what it can do."""

import os
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

SYSTEM_PROGRAMS = ("/usr/bin/bwrap", "/bin/bwrap")
"""First: where user namespaces are restricted, the system makes its exception for the program at this place."""


class Bubblewrap(NamedTuple):
    """The program, and what it can do."""

    path: str
    version: str
    options: frozenset[str]


def find_bubblewrap(environ: Mapping[str, str]) -> str | None:
    """The path of bwrap: the system's own, else the first on PATH."""
    on_path = (os.path.join(folder, "bwrap") for folder in environ.get("PATH", "").split(os.pathsep))
    for program in (*SYSTEM_PROGRAMS, *on_path):
        if os.path.isabs(program) and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def inspect_bubblewrap(path: str) -> Bubblewrap:
    """Asks the program at a path what it is; OSError where it does not run."""
    status = os.stat(path)
    return _asked(path, status.st_ino, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _asked(path: str, _inode: int, _changed: int) -> Bubblewrap:
    version = _printed(path, "--version").removeprefix("bubblewrap ").strip()
    words = _printed(path, "--help").split()
    return Bubblewrap(path, version[:40], frozenset(word for word in words if word.startswith("--")))


def _printed(path: str, option: str) -> str:
    done = subprocess.run(  # noqa: S603  a fixed program with a fixed option
        [path, option], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
    )
    return (done.stdout or done.stderr).decode("utf-8", "replace")
