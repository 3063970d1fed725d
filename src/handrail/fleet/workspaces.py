"""The workspace of a run: a folder that all workers share."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from handrail.api import Handrail
from handrail.fleet.sessions import Claim, SharedFolder
from handrail.protocol.errors import UsageError
from handrail.protocol.text import render_value
from handrail.store.shared_store import SharedStore


class RunWorkspace:
    """A workspace as it is."""

    def __init__(self, path: str, log: str) -> None:
        self.path = path
        self.log = log
        """The name of its change log."""

    def restore(self, rail: Handrail) -> None:
        """Brings the workspace to the state in which the last worker left it."""

    def save(self, rail: Handrail) -> None:
        """Hands the result back."""


@contextmanager
def open_workspace(claim: Claim, store: SharedStore, folder: str) -> Generator[RunWorkspace]:
    """Prepares the workspace of a session within the folder of its run. UsageError if it cannot be used."""
    wanted = claim.options.workspace
    if isinstance(wanted, SharedFolder):
        if not os.path.isdir(wanted.path):
            raise UsageError(f"this worker has no folder {render_value(wanted.path)}")
        yield RunWorkspace(wanted.path, f"folder:{os.path.realpath(wanted.path)}")
        return
    raise UsageError("git workspaces")
