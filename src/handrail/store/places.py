"""Which folder a workspace's part of the state folder belongs to: its name is only a digest of it."""

import hashlib
import os
from contextlib import suppress

from handrail.store.folder import write_private

_NAME = ".place"


def save_workspace_path(home: str, workspace: str) -> None:
    """Notes it, once. Where it cannot be noted, people have to name the workspace themselves."""
    path = os.path.join(home, _NAME)
    if not os.path.exists(path):
        with suppress(OSError):
            write_private(path, os.fsencode(os.path.realpath(workspace)), ".new")


def read_workspace_path(home: str) -> str | None:
    """The folder; None where nobody noted it, or what is noted is another one."""
    try:
        with open(os.path.join(home, _NAME), "rb") as file:
            noted = file.read(65536)
    except OSError:
        return None
    return os.fsdecode(noted) if hashlib.sha256(noted).hexdigest().startswith(os.path.basename(home)) else None
