"""A folder in the state folder with one small file for each thing that is kept: other processes add and remove too."""

import os
from typing import Generic, TypeVar

from handrail.protocol.error import StoreError
from handrail.protocol.reading import UNREADABLE, decode_json
from handrail.protocol.wire import encode
from handrail.store.folder import make_private, write_private

_UNFINISHED = ".new"
Kind = TypeVar("Kind")


class SmallFiles(Generic[Kind]):
    """The folder is made with the first file. StoreError where it cannot be used; `what` is how that names it."""

    def __init__(self, path: str, kind: type[Kind], what: str) -> None:
        self._path = path
        self._kind = kind
        self._what = what

    def place(self, name: str) -> str:
        """The path of a file."""
        return os.path.join(self._path, name)

    def names(self) -> frozenset[str]:
        """The files that there are."""
        try:
            return frozenset(name for name in os.listdir(self._path) if not name.endswith(_UNFINISHED))
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise self._unusable(error) from error

    def read(self, name: str) -> Kind | None:
        """What a file says; None where it cannot be read: then nothing counts as kept."""
        try:
            with open(os.path.join(self._path, name), "rb") as file:
                return decode_json(file.read(), self._kind)
        except (OSError, *UNREADABLE):
            return None

    def write(self, name: str, kept: Kind) -> None:
        """Writes one, in the place of what had its name."""
        try:
            make_private(self._path)
            write_private(os.path.join(self._path, name), encode(kept), _UNFINISHED)
        except OSError as error:
            raise self._unusable(error) from error

    def mark(self, name: str) -> None:
        """Makes an empty one, which only says that it is there."""
        try:
            os.close(os.open(os.path.join(self._path, name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise self._unusable(error) from error

    def drop(self, name: str) -> bool:
        """Removes one; whether it was there."""
        try:
            os.unlink(os.path.join(self._path, name))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unusable(error) from error
        return True

    def _unusable(self, error: OSError) -> StoreError:
        return StoreError(f"the {self._what} in {self._path} cannot be kept: {error.strerror}")
