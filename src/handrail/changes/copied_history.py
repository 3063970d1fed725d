"""Copies the history of a workspace, for a copy of the workspace."""

import os
import shutil
import sqlite3
from contextlib import closing

from handrail.protocol.errors import StoreError
from handrail.store.database import open_read_only

_DATABASE, _BLOBS = "changes.db", "blobs"


def copy_history(home: str, target: str) -> None:
    """Copies the change log out of the folder of a workspace, and the contents that it takes to go back. Paths in it
    are relative, so they count for the copy too. The log may be in use; it is only looked at."""
    source = os.path.join(home, ".changes")
    if not os.path.exists(os.path.join(source, _DATABASE)):
        return
    new = sqlite3.connect(os.path.join(target, _DATABASE))
    try:
        with closing(open_read_only(os.path.join(source, _DATABASE))) as old, closing(new):
            old.backup(new)
    except sqlite3.Error as error:
        raise StoreError(f"the change log in {source} cannot be copied: {error}") from error
    if os.path.isdir(os.path.join(source, _BLOBS)):
        shutil.copytree(os.path.join(source, _BLOBS), os.path.join(target, _BLOBS), dirs_exist_ok=True)
