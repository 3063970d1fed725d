"""Finds the ripgrep program: on PATH, else the one that the wheel `ripgrep` brings."""

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain

_MAX_LINKS = 40
"""Links after which the system gives up."""


def find_ripgrep(roots: Iterable[str]) -> str | None:
    """The path of rg itself, past all links, or None. One that lies in a root, or that a link in one leads to, is never
    run: the agent could have written it."""
    inside = tuple(os.path.realpath(root) for root in roots)
    for folder in chain(_on_path(), _scripts()):
        program = os.path.join(folder, "rg")
        if os.path.isabs(program) and _is_program(program) and not _lies_in(program, inside):
            return os.path.realpath(program)
    return None


def read_program_version(program: str) -> str | None:
    """What the program says of itself; None where it does not run."""
    import subprocess  # noqa: PLC0415  only doctor asks

    try:
        done = subprocess.run(
            ["rg", "--version"],  # noqa: S607  called so, and found by us
            executable=program,
            env={},
            capture_output=True,
            timeout=10,
            check=True,
        )
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
    return any(os.path.commonpath((name, root)) == root for name in _walk_links(program) for root in roots)


def _walk_links(path: str) -> Iterator[str]:
    """What is passed on the way to a path: each link, by its own place, and what is reached at last."""
    at, left, links = "/", path.split("/")[::-1], 0
    while left:
        name = left.pop()
        at = os.path.normpath(os.path.join(at, name))
        if os.path.islink(at) and links < _MAX_LINKS:
            yield at
            links += 1
            target = os.readlink(at)
            at = "/" if target.startswith("/") else os.path.dirname(at)
            left += target.split("/")[::-1]
    yield at
    yield os.path.realpath(path)
