"""The folders outside the workspace that people opened, kept until they are closed: one small file for each."""

import hashlib
import os

from handrail.protocol.permission import OpenedFolder
from handrail.store.small_files import SmallFiles


class GrantedFolders:
    """A folder of them, in the state folder: of one session, or of one workspace."""

    def __init__(self, path: str) -> None:
        self._files = SmallFiles(path, OpenedFolder, "opened folders")

    def names(self) -> tuple[str, ...]:
        """What there is, by names that change whenever it changes."""
        return tuple(sorted(self._files.names()))

    def listed(self) -> tuple[OpenedFolder, ...]:
        """All of them, by path. One that cannot be read was not opened."""
        found = [folder for name in self.names() if (folder := self._files.read(name)) and _name(folder) == name]
        return tuple(sorted(found, key=lambda folder: folder.path))

    def add(self, folder: OpenedFolder) -> None:
        """Keeps one; opened for writing, it is no longer only opened for reading."""
        self._files.write(_name(folder), folder)
        if folder.access == "write":
            self._files.drop(_name_of(folder.path, "read"))

    def remove(self, path: str) -> bool:
        """Forgets one; whether it was there."""
        dropped = [self._files.drop(_name_of(path, access)) for access in ("read", "write")]
        return True in dropped


def _name(folder: OpenedFolder) -> str:
    return _name_of(folder.path, folder.access)


def _name_of(path: str, access: str) -> str:
    return f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}-{access}"
