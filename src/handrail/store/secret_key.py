"""A random key of the state folder's own: what is signed with it was signed by somebody who can read the folder."""

import os
from contextlib import suppress

from handrail.protocol.error import StoreError
from handrail.store.folder import make_private

_KEY_BYTES = 32


def load_secret_key(state: str, name: str) -> bytes:
    """The key of this name; it is made when it is first asked for, by whoever is first, and for its owner only."""
    path = os.path.join(state, f"{name}.key")
    try:
        found = _read(path)
        if found is None:
            make_private(state)
            _make(path)
            found = _read(path)
    except OSError as error:
        raise StoreError(f"the key {path} cannot be used: {error.strerror}") from error
    if found is None or len(found) != _KEY_BYTES:
        raise StoreError(
            f"the key {path} is not {_KEY_BYTES} bytes long. Remove it: what it signed counts no more then."
        )
    return found


def _read(path: str) -> bytes | None:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read(_KEY_BYTES + 1)
    return None


def _make(path: str) -> None:
    """Whole or not at all, and never in the place of one that somebody else has just made."""
    temporary = f"{path}.{os.urandom(6).hex()}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)
