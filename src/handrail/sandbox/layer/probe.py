"""Finds out by doing whether an overlay can lie over roots: one is mounted, and something is changed in it."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

from handrail.sandbox.layer.layer import Overlay, OverlayMount
from handrail.sandbox.layer.mounting import NOT_MOUNTED, Programs, wrap_in_overlay

_PROBE_SECONDS = 20.0
_MARK = "handrail-probe-"
_CHANGED = """
name=$1; shift
for root; do
    cd "$root/$name" && [ -f gone ] && rm gone replaced/old && rmdir replaced && mkdir replaced && echo new >kept
done
"""


def probe_overlay(folder: str, roots: tuple[str, ...], programs: Programs, *, in_user_namespace: bool) -> str | None:
    """What is wrong, in words; None if overlays work. Nothing is changed but in `folder`, where overlays are stored."""
    mark = f"{_MARK}{os.urandom(8).hex()}"
    try:
        with ExitStack() as stack:
            below = Overlay(_new(folder), roots, in_user_namespace=in_user_namespace)
            stack.callback(below.remove)
            overlay = Overlay(_new(folder), roots, (below,), in_user_namespace=in_user_namespace)
            stack.callback(overlay.remove)
            for over in below.overlaid:
                _stage(os.path.join(over.upper, mark))
            printed = _run_in_overlay(overlay, mark, programs)
            return next(_find_overlay_faults(overlay, mark, printed), None)
    except (OSError, subprocess.SubprocessError) as error:
        return f"trying it out failed: {error}"


def _new(folder: str) -> str:
    return os.path.join(folder, os.urandom(8).hex())


def _stage(folder: str) -> None:
    """What an overlay changes: a file to remove, one to write to, and a folder in whose place comes another."""
    os.makedirs(os.path.join(folder, "replaced"))
    for name in ("gone", "kept", "replaced/old"):
        with open(os.path.join(folder, name), "x", encoding="ascii") as file:
            file.write("old\n")


def _run_in_overlay(overlay: Overlay, mark: str, programs: Programs) -> str:
    argv = ("/bin/sh", "-c", _CHANGED, "handrail", mark, *(over.root for over in overlay.overlaid))
    done = subprocess.run(  # noqa: S603  programs of the system with words of our own
        wrap_in_overlay(argv, overlay, programs),
        env={"LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        timeout=_PROBE_SECONDS,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace")


def _find_overlay_faults(overlay: Overlay, mark: str, printed: str) -> Iterator[str]:
    said = extract_mount_error(printed)
    if NOT_MOUNTED in printed:
        yield said or "it cannot be mounted"
    for over in overlay.overlaid:
        changed = os.path.join(over.upper, mark)
        if os.path.lexists(os.path.join(over.root, mark)):
            yield "what is changed in an overlay also changes the files below it"
        if not _is_removed(os.path.join(changed, "gone")) or _content(os.path.join(changed, "kept")) != "new\n":
            yield said or "what is changed in an overlay is not stored in it"
        if not _is_replaced(over, mark):
            yield said or "a folder cannot be replaced in an overlay"


def extract_mount_error(printed: str) -> str:
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


def _is_replaced(over: OverlayMount, mark: str) -> bool:
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
