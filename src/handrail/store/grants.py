"""What people said not to be asked about again, kept until it is revoked: one small file for each class of commands."""

import os

import msgspec

from handrail.protocol.error import StoreError
from handrail.protocol.permission import Granted
from handrail.protocol.wire import encode
from handrail.store.folder import make_private, write_private

_UNFINISHED = ".new"
_REVOKED = ".revoked"
"""How the mark is called that stays of a grant. While it is there the grant is none, whoever writes it again: the yes
that it came from may be carried out anew after a crash."""


class GrantFiles:
    """A folder of them, in the state folder: of one session, or of one workspace."""

    def __init__(self, path: str) -> None:
        self._path = path

    def names(self) -> frozenset[str]:
        """What is granted, by ids: a grant never changes, so these change whenever it does."""
        try:
            found = frozenset(os.listdir(self._path))
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise self._unusable(error) from error
        return frozenset(name for name in found if "." not in name and name + _REVOKED not in found)

    def listed(self) -> list[Granted]:
        """All of them, the oldest first. One that cannot be read was not granted."""
        found = [self._read(name) for name in self.names()]
        return sorted((one for one in found if one is not None), key=lambda one: (one.time, one.command))

    def add(self, granted: Granted) -> None:
        """Keeps one, unless it was revoked already."""
        path = os.path.join(self._path, granted.id)
        try:
            make_private(self._path)
            if not os.path.exists(path) and not os.path.exists(path + _REVOKED):
                write_private(path, encode(granted), _UNFINISHED)
        except OSError as error:
            raise self._unusable(error) from error

    def revoke(self, grant_id: str) -> None:
        """Ends one for good."""
        path = os.path.join(self._path, grant_id)
        try:
            os.close(os.open(path + _REVOKED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.unlink(path)
        except FileNotFoundError:
            pass  # somebody else revoked it at the same time
        except OSError as error:
            raise self._unusable(error) from error

    def _read(self, name: str) -> Granted | None:
        try:
            with open(os.path.join(self._path, name), "rb") as file:
                granted = msgspec.json.decode(file.read(), type=Granted)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return granted if granted.id == name else None

    def _unusable(self, error: OSError) -> StoreError:
        return StoreError(f"the grants in {self._path} cannot be kept: {error.strerror}")
