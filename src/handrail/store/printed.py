"""Where what commands print is put while they run: a folder for each session at work, locked as long as it is."""

import os
import shutil
from collections.abc import Callable

from handrail.protocol.error import StoreError
from handrail.store.folder import PRINTED, make_private
from handrail.store.locked_folder import locked


class PrintedFolder:
    """A new folder of one session; what is in it when it is closed is removed with it."""

    def __init__(self, state: str) -> None:
        self._all = os.path.join(state, PRINTED)
        self.path = ""
        self._descriptor = -1
        make_private(self._all)
        while self._descriptor < 0:
            self._make()

    def close(self) -> None:
        """Removes the folder; can be repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(descriptor)

    def _make(self) -> None:
        self.path = os.path.join(self._all, os.urandom(6).hex())
        try:
            os.mkdir(self.path, 0o700)
        except OSError as error:
            raise StoreError(f"the folder {self.path} cannot be made: {error.strerror}") from error
        self._descriptor = locked(self.path)  # -1 where somebody took it for abandoned meanwhile


def remove_left(folder: str, before: Callable[[], object]) -> None:
    """Removes the folders of killed processes from the one that holds all. If there are any, `before` is called first:
    whoever is killed meanwhile leaves the rest to the next."""
    called = False
    for name in os.listdir(folder):
        descriptor = locked(os.path.join(folder, name))
        if descriptor < 0:
            continue  # its process lives
        try:
            if not called:
                before()
                called = True
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        finally:
            os.close(descriptor)
