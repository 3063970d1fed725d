"""Where a command's programs are looked for."""

import os
import stat
from collections.abc import Callable

from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.view.mounts import is_within
from handrail.settings.paths import is_located_in
from handrail.workspace.roots import find_descriptor_path

Shown = Callable[[str], bool]
"""Whether the command will see an absolute path."""
Usable = Callable[[str], bool]
"""Whether a path is one that programs and libraries may be taken from."""

_LOOK = os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_LAST_RESORT = "/usr/bin:/bin"


def build_usable_check(profile: SandboxProfile, shown: Shown) -> Usable:
    """The places that are there, are shown, and that not everybody writes to. To a command that only looks, none that
    leads through a root either: who writes there would choose the program."""
    roots = (*profile.read_only, *profile.writable) if profile.is_read_only else ()

    def usable(path: str) -> bool:
        if not _is_normal(path) or not shown(path):
            return False
        place = _place(path)
        return place is not None and not any(_leads_through(root, path, place) for root in roots)

    return usable


def build_search_path(path: str, usable: Usable) -> str:
    """The usable folders of a PATH, in their order, then the system's own."""
    entries = [entry.rstrip("/") for entry in path.split(":")]
    folders = [entry for entry in dict.fromkeys((*entries, *_SYSTEM)) if usable(entry) and os.path.isdir(entry)]
    return ":".join(folders) or _LAST_RESORT


def _is_normal(path: str) -> bool:
    return path.startswith("/") and ":" not in path and path.isprintable() and os.path.normpath(path) == path != "/"


def _place(path: str) -> str | None:
    """Where a path leads; None where that is nothing, or everybody may write there."""
    try:
        descriptor = os.open(path, _LOOK)
    except OSError:
        return None
    try:
        return None if os.fstat(descriptor).st_mode & stat.S_IWOTH else find_descriptor_path(descriptor)
    finally:
        os.close(descriptor)


def _leads_through(root: str, path: str, place: str) -> bool:
    if path == place:  # no link is on the way
        return is_within(path, root)
    return is_located_in(path, root)
