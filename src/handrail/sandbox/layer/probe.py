"""Finds out by doing whether a layer can lie over roots: one is mounted, and something is changed in it."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

from handrail.sandbox.layer.layer import Layer, Overlaid
from handrail.sandbox.layer.mounting import NOT_MOUNTED, Programs, under_layer

_SECONDS = 20.0
_MARK = "handrail-probe-"
_CHANGED = """
name=$1; shift
for root; do
    cd "$root/$name" && [ -f gone ] && rm gone replaced/old && rmdir replaced && mkdir replaced && echo new >kept
done
"""


def wrong_with_layer(folder: str, roots: tuple[str, ...], programs: Programs, *, own_users: bool) -> str | None:
    """What is wrong, in words; None where layers work. Nothing is changed but in `folder`, where layers are kept."""
    mark = f"{_MARK}{os.urandom(8).hex()}"
    try:
        with ExitStack() as stack:
            below = Layer(_new(folder), roots, own_users=own_users)
            stack.callback(below.remove)
            layer = Layer(_new(folder), roots, (below,), own_users=own_users)
            stack.callback(layer.remove)
            for over in below.overlaid:
                _stage(os.path.join(over.upper, mark))
            printed = _run(layer, mark, programs)
            return next(_wrong(layer, mark, printed), None)
    except (OSError, subprocess.SubprocessError) as error:
        return f"trying it out failed: {error}"


def _new(folder: str) -> str:
    return os.path.join(folder, os.urandom(8).hex())


def _stage(folder: str) -> None:
    """What a layer changes: a file to remove, one to write to, and a folder in whose place comes another."""
    os.makedirs(os.path.join(folder, "replaced"))
    for name in ("gone", "kept", "replaced/old"):
        with open(os.path.join(folder, name), "x", encoding="ascii") as file:
            file.write("old\n")


def _run(layer: Layer, mark: str, programs: Programs) -> str:
    argv = ("/bin/sh", "-c", _CHANGED, "handrail", mark, *(over.root for over in layer.overlaid))
    done = subprocess.run(  # noqa: S603  programs of the system with words of our own
        under_layer(argv, layer, programs),
        env={"LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        timeout=_SECONDS,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace")


def _wrong(layer: Layer, mark: str, printed: str) -> Iterator[str]:
    said = said_of(printed)
    if NOT_MOUNTED in printed:
        yield said or "it cannot be mounted"
    for over in layer.overlaid:
        changed = os.path.join(over.upper, mark)
        if os.path.lexists(os.path.join(over.root, mark)):
            yield "what is changed in a layer comes through it"
        if not _is_removed(os.path.join(changed, "gone")) or _content(os.path.join(changed, "kept")) != "new\n":
            yield said or "what is changed in a layer does not come to lie in it"
        if not _is_replaced(over, mark):
            yield said or "a folder cannot be replaced in a layer"


def said_of(printed: str) -> str:
    """What was said about it, of all that was printed."""
    lines = [line.strip() for line in printed.split("\n")]
    said = [line for line in lines if line and line != NOT_MOUNTED and not line.startswith("dmesg")]
    return said[-1][:300] if said else ""


def _is_removed(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_replaced(over: Overlaid, mark: str) -> bool:
    try:
        return os.getxattr(os.path.join(over.upper, mark, "replaced"), "user.overlay.opaque") == b"y"
    except OSError:
        return False


def _content(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(100)
    except (OSError, ValueError):
        return ""
