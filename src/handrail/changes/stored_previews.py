"""The store of previews that wait for an answer, one folder each."""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.wire import decode_msgpack
from handrail.store.blobs import Blobs
from handrail.store.database import Durability
from handrail.store.state_dir import flush_folder, make_private, remove_folder

if TYPE_CHECKING:
    from handrail.store.shared_store import SharedStore

_VERSION = 1
_DOCUMENT = "trial"
_CONTENTS = "contents"
_UNFINISHED = ".new"
_NAME = re.compile(r"[a-z]+_[0-9a-f]{16,64}")
_YOUNG_SECONDS = 3_600
"""Seconds in which an unfinished preview may yet be finished."""


class StoredPreview(msgspec.Struct, frozen=True):
    document: msgspec.Raw
    """The preview, for the code that decodes previews."""
    contents: tuple[str, ...] = ()
    """Hashes of the contents that are needed to commit it."""
    size: int = 0
    """Bytes of the contents in its own folder and of its output."""
    version: int = _VERSION
    """Raised if older programs would misread the document. New fields do not raise it."""


class PreviewStore:
    """The previews of one workspace. The folder is made with the first."""

    def __init__(self, folder: str, *, durable: bool = True, store: "SharedStore | None" = None) -> None:
        """`store`: the database of a fleet, which has a copy of each preview for other machines."""
        self._folder = folder
        self._store = store
        self._durable = durable
        self._durability: Durability = "power" if durable else "none"
        self._sizes: dict[str, int] = {}
        self._blobs: dict[str, Blobs] = {}

    def put(self, name: str, stored: StoredPreview, files: dict[str, str], store: Callable[[Blobs], None]) -> None:
        """Stores a preview. `files` are moved into its folder, by their new names. `store` adds contents to its folder.
        The folder gets its name when it is complete."""
        unfinished = os.path.join(self._folder, f"{name}{_UNFINISHED}")
        try:
            make_private(self._folder)
            os.mkdir(unfinished, 0o700)
            with contextlib.closing(Blobs(os.path.join(unfinished, _CONTENTS), self._durability)) as contents:
                store(contents)
            for inner, path in files.items():
                shutil.move(path, os.path.join(unfinished, inner))
            self._write(os.path.join(unfinished, _DOCUMENT), stored)
            self._flush(unfinished)
            os.rename(unfinished, os.path.join(self._folder, name))
            self._flush(self._folder)
            if self._store is not None:
                self._store.save_folder(name, os.path.join(self._folder, name))
        except BaseException as error:
            remove_folder(unfinished)
            if isinstance(error, OSError):
                raise StoreError(f"the preview cannot be stored in {self._folder}: {error.strerror}") from error
            raise

    def get(self, name: str) -> StoredPreview | None:
        """A stored preview; None if there is none. StoreError if it cannot be read."""
        if not _NAME.fullmatch(name):
            return None
        path = os.path.join(self._folder, name)
        if self._store is not None and not os.path.exists(path):
            self._store.restore_folder(name, path)
        try:
            with open(os.path.join(path, _DOCUMENT), "rb") as file:
                preview = decode_msgpack(file.read(), StoredPreview)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"the preview cannot be read: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise StoreError("the preview cannot be read: it is damaged") from error
        if preview.version > _VERSION:
            raise StoreError("the preview cannot be read: a newer handrail made it")
        return preview

    def blobs(self, name: str) -> Blobs:
        """The contents in the folder of a preview; older ones have theirs in the history."""
        if name not in self._blobs:
            self._blobs[name] = Blobs(os.path.join(self._folder, name, _CONTENTS), self._durability)
        return self._blobs[name]

    def size(self) -> int:
        names = self.names()
        for name in names:
            with contextlib.suppress(StoreError):
                if name not in self._sizes and (stored := self.get(name)) is not None:
                    self._sizes[name] = stored.size
        return sum(self._sizes.get(name, 0) for name in names)

    def file(self, name: str, inner: str) -> str | None:
        """The path of a file of a preview; None if it is gone. The caller may move it away."""
        path = os.path.join(self._folder, name, inner)
        return path if os.path.exists(path) else None

    def drop(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            return
        if self._store is not None:
            self._store.drop_folder(name)
        if name in self._blobs:
            self._blobs.pop(name).close()
        unfinished = os.path.join(self._folder, f"{name}{_UNFINISHED}")
        with contextlib.suppress(OSError):  # atomically: a crash leaves no incomplete preview
            os.rename(os.path.join(self._folder, name), unfinished)
        remove_folder(unfinished)

    def names(self) -> list[str]:
        return [name for name in self._entries() if _NAME.fullmatch(name)]

    def contents(self) -> set[str]:
        found: set[str] = set()
        for name in self.names():
            with contextlib.suppress(StoreError):
                stored = self.get(name)
                found.update(stored.contents if stored is not None else ())
        return found

    def sweep(self, before: float) -> None:
        """Removes previews of before a time, and unfinished ones."""
        for name in self._entries():
            path = os.path.join(self._folder, name)
            with contextlib.suppress(OSError):
                made = os.stat(path).st_mtime
                if name.endswith(_UNFINISHED) and abs(time.time() - made) > _YOUNG_SECONDS:
                    remove_folder(path)
                elif made < before:
                    self.drop(name)

    def close(self) -> None:
        """Closes the databases of contents. The next use opens them again."""
        for blobs in self._blobs.values():
            blobs.close()

    def _entries(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _write(self, path: str, stored: StoredPreview) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(msgspec.msgpack.encode(stored))
            if self._durable:
                file.flush()
                os.fsync(descriptor)

    def _flush(self, folder: str) -> None:
        if self._durable:
            flush_folder(folder)
