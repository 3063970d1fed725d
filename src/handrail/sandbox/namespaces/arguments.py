"""What bubblewrap is told: the namespaces to make, and the view of the disk in them."""

import os
from collections.abc import Iterable, Iterator

from handrail.sandbox.limits import ResourceLimits
from handrail.sandbox.namespaces.bubblewrap import Bubblewrap
from handrail.sandbox.view.mounts import Mount, is_within

_SHARE_OF_MEMORY = 4
"""What a private folder may hold, as a part of the memory limit: no process is seen to use it."""


def build_arguments(program: Bubblewrap, view: Iterable[Mount], nothing: str, limits: ResourceLimits) -> Iterator[str]:
    """Everything but what differs from one start to the next. `nothing` has an empty file and an empty folder."""
    # As root, bubblewrap leaves every capability, and it goes on without a user namespace where there can be none.
    yield from ("--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--die-with-parent", "--hostname", "localhost")
    # In an overlay's user namespace everybody is root; to the command nobody is but who is.
    yield from ("--uid", str(os.geteuid()), "--gid", str(os.getegid()))
    if "--disable-userns" in program.options:
        yield "--disable-userns"
    mounts = tuple(view)
    opened = {mount.place for mount in mounts if mount.kind == "no-folder" and _holds_another(mount, mounts)}
    size = ("--size", str(limits.memory // _SHARE_OF_MEMORY)) if "--size" in program.options else ()
    for mount in mounts:
        yield from ("--tmpfs", mount.place) if mount.place in opened else _mounted(mount, nothing, size)
    # What bubblewrap makes folders in is closed at the end: else a command could fill it without a limit.
    for mount in mounts:
        if mount.kind == "devices" or mount.place in opened:
            yield from ("--remount-ro", mount.place)
    if not any(mount.place == "/" for mount in mounts):
        yield from ("--remount-ro", "/")


def _mounted(mount: Mount, nothing: str, size: tuple[str, ...]) -> tuple[str, ...]:
    words = {
        "shown": ("--ro-bind", mount.place),
        "read-only": ("--ro-bind", mount.place),
        "sealed": ("--ro-bind", mount.place),
        "writable": ("--bind", mount.place),
        "pinned": ("--bind", mount.place),
        "home": (*size, "--tmpfs"),
        "private": (*size, "--tmpfs"),
        "own-file": ("--ro-bind", mount.target),
        "link": ("--symlink", mount.target),
        "no-file": ("--ro-bind", f"{nothing}/file"),
        "no-folder": ("--ro-bind", f"{nothing}/folder"),
        "processes": ("--proc",),
        "devices": ("--dev",),
        "proxy": ("--ro-bind", mount.target),
    }
    # The kernel lets whoever is root outside write its switches, without asking for any privilege.
    switches = ("--ro-bind", "/proc/sys", f"{mount.place}/sys") if mount.kind == "processes" else ()
    return (*words[mount.kind], mount.place, *switches)


def _holds_another(mount: Mount, mounts: tuple[Mount, ...]) -> bool:
    return any(other.place != mount.place and is_within(other.place, mount.place) for other in mounts)
