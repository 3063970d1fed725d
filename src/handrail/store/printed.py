"""Where what commands print is put while they run: a folder for each session at work, locked as long as it is."""

import os
import shutil

from handrail.protocol.error import StoreError
from handrail.store.folder import make_private
from handrail.store.locked_folder import locked


class PrintedFolder:
    """A new folder of one session; what is in it when it is closed is removed with it."""

    def __init__(self, state: str) -> None:
        self._all = os.path.join(state, "printed")
        self.path = ""
        self._descriptor = -1
        make_private(self._all)
        while self._descriptor < 0:
            self._make()
        self.found_abandoned = self._remove_abandoned()
        """Whether there were folders of processes that were killed, which are removed now."""

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

    def _remove_abandoned(self) -> bool:
        found = False
        for name in os.listdir(self._all):
            descriptor = locked(os.path.join(self._all, name))  # our own is locked as those of the living are
            if descriptor >= 0:
                found = True
                shutil.rmtree(os.path.join(self._all, name), ignore_errors=True)
                os.close(descriptor)
        return found
