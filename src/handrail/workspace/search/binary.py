"""Finds the ripgrep program: on PATH, else the one that the wheel `ripgrep` brings."""

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain


def ripgrep_program(roots: Iterable[str]) -> str | None:
    """The absolute path of rg, or None. One that lies in a root is never run: the agent could have written it."""
    inside = tuple(os.path.realpath(root) for root in roots)
    for folder in chain(_on_path(), _scripts()):
        program = os.path.join(folder, "rg")
        if os.path.isabs(program) and _is_program(program) and not _lies_in(program, inside):
            return program
    return None


def program_version(program: str) -> str | None:
    """What the program says of itself; None where it does not run."""
    import subprocess  # noqa: PLC0415  only doctor asks

    try:
        done = subprocess.run([program, "--version"], env={}, capture_output=True, timeout=10, check=True)  # noqa: S603  found by us
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").partition("\n")[0][:80]


def _on_path() -> Iterator[str]:
    return (folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder)


def _scripts() -> Iterator[str]:
    """Where the wheel may have put it: beside the interpreter, among the scripts, or where its record says."""
    yield os.path.dirname(sys.executable)
    import sysconfig  # noqa: PLC0415  only where rg is not on PATH

    yield sysconfig.get_path("scripts")
    from importlib import metadata  # noqa: PLC0415  as above

    try:
        files = metadata.files("ripgrep") or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == "rg":
            yield os.path.dirname(os.path.abspath(str(file.locate())))


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _lies_in(program: str, roots: tuple[str, ...]) -> bool:
    """By every name that leads to it: a link outside may point inside, and the other way round."""
    names = (os.path.realpath(program), os.path.join(os.path.realpath(os.path.dirname(program)), "rg"))
    return any(os.path.commonpath((name, root)) == root for name in names for root in roots)
