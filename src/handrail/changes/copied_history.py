"""Copies the history of a workspace, for a copy of the workspace."""

import os

from handrail.store.blobs import copy_blobs
from handrail.store.database import copy_database

_DATABASE, _BLOBS = "changes.db", "blobs"


def copy_history(home: str, target: str) -> None:
    """Copies the change log out of the folder of a workspace, and the contents that it takes to go back. Paths in it
    are relative, so they count for the copy too. The log may be in use; it is only looked at."""
    source = os.path.join(home, ".changes")
    if not os.path.exists(os.path.join(source, _DATABASE)):
        return
    copy_database(os.path.join(source, _DATABASE), os.path.join(target, _DATABASE))
    copy_blobs(os.path.join(source, _BLOBS), os.path.join(target, _BLOBS))
