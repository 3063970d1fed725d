"""Whether control groups (version 2) can be made here for commands."""

import os
from functools import cache

_MOUNT = "/sys/fs/cgroup"
_NEEDED = frozenset({"memory", "pids"})


@cache
def find_parent_group(mount: str = _MOUNT) -> str | None:
    """The group in which we may make others: the one that holds our own. None where it is not ours to change, or does
    not pass on what is needed."""
    own = _own_group()
    parent = os.path.dirname(mount + own.rstrip("/")) if own != "/" else mount
    passed_on = _read(f"{parent}/cgroup.subtree_control").split()
    writable = os.access(parent, os.W_OK) and os.access(f"{parent}/cgroup.procs", os.W_OK)
    return parent if writable and _NEEDED.issubset(passed_on) else None


def _own_group() -> str:
    lines = _read("/proc/self/cgroup").splitlines()
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
