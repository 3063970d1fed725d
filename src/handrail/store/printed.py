"""Where what commands print is put while they run: a folder for each session at work, locked as long as it is."""

import os
from contextlib import ExitStack

from handrail.protocol.error import StoreError
from handrail.store.folder import PRINTED, make_private
from handrail.store.locked_folder import make_locked_folder


class SpillFolder:
    """A new folder of one session; what is in it when it is closed is removed with it."""

    def __init__(self, state: str) -> None:
        self._stack = ExitStack()
        around = os.path.join(state, PRINTED)
        make_private(around)
        try:
            self.path = self._stack.enter_context(make_locked_folder(around))
        except OSError as error:
            raise StoreError(f"no folder can be made in {around}: {error.strerror}") from error

    def close(self) -> None:
        """Removes the folder; can be repeated."""
        self._stack.close()
