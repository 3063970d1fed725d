"""Large texts, stored once under the hash of their bytes."""

import contextlib
import hashlib
import os

from handrail.protocol.error import StoreError


class Blobs:
    """A folder of files that never change."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Stores the bytes; the hash to find them by."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        if os.path.exists(path):
            return digest
        temporary = f"{path}.{os.urandom(6).hex()}"
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            self._write(temporary, data)
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise StoreError(f"a blob cannot be stored in {self._folder}: {error.strerror}") from error
        return digest

    def open(self, digest: str) -> int:
        """A descriptor for reading a blob; FileNotFoundError when it is gone."""
        return os.open(self._path(digest), os.O_RDONLY | os.O_CLOEXEC)

    def _path(self, digest: str) -> str:
        return os.path.join(self._folder, digest[:2], digest)

    def _write(self, path: str, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
