"""The folders outside the workspace that people opened, kept until they are closed: one small file for each."""

import hashlib
import os

import msgspec

from handrail.protocol.error import StoreError
from handrail.protocol.permission import OpenedFolder
from handrail.protocol.wire import encode
from handrail.store.folder import make_private, write_private

_UNFINISHED = ".new"


class OpenedFolders:
    """A folder of them, in the state folder: of one session, or of one workspace."""

    def __init__(self, path: str) -> None:
        self._path = path

    def names(self) -> tuple[str, ...]:
        """What there is, by names that change whenever it changes."""
        try:
            return tuple(sorted(name for name in os.listdir(self._path) if not name.endswith(_UNFINISHED)))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._unusable(error) from error

    def listed(self) -> tuple[OpenedFolder, ...]:
        """All of them, by path. One that cannot be read was not opened."""
        found = [self._read(name) for name in self.names()]
        return tuple(sorted((folder for folder in found if folder is not None), key=lambda folder: folder.path))

    def add(self, folder: OpenedFolder) -> None:
        """Keeps one; opened for writing, it is no longer only opened for reading."""
        try:
            make_private(self._path)
            name = _name(folder.path, folder.access)
            write_private(os.path.join(self._path, name), encode(folder), _UNFINISHED)
            if folder.access == "write":
                self._drop(_name(folder.path, "read"))
        except OSError as error:
            raise self._unusable(error) from error

    def remove(self, path: str) -> bool:
        """Forgets one; whether it was there."""
        try:
            dropped = [self._drop(_name(path, access)) for access in ("read", "write")]
            return True in dropped
        except OSError as error:
            raise self._unusable(error) from error

    def _read(self, name: str) -> OpenedFolder | None:
        try:
            with open(os.path.join(self._path, name), "rb") as file:
                folder = msgspec.json.decode(file.read(), type=OpenedFolder)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return folder if _name(folder.path, folder.access) == name else None

    def _drop(self, name: str) -> bool:
        try:
            os.unlink(os.path.join(self._path, name))
        except FileNotFoundError:
            return False
        return True

    def _unusable(self, error: OSError) -> StoreError:
        return StoreError(f"the opened folders in {self._path} cannot be kept: {error.strerror}")


def _name(path: str, access: str) -> str:
    return f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}-{access}"
