"""Full outputs of calls whose results hold only a part."""

import contextlib
import os
from collections.abc import Iterator

from handrail.protocol.errors import StoreError, ToolError
from handrail.store.blobs import Blobs
from handrail.store.conversation_state import build_output_reference, find_output, save_output
from handrail.store.database import Database
from handrail.tools.tool import OffloadedText

_RAW_PREFIX = "printed:"
"""The prefix of a blob name if the blob holds the raw output of a command."""
_CHUNK_BYTES = 1 << 20


class StoredOutputs:
    """The stored outputs of one session."""

    def __init__(self, blobs: Blobs, database: Database) -> None:
        self._blobs = blobs
        self._database = database

    def store(self, call_id: str, text: str) -> str:
        """Stores a text. Returns its reference for `read`."""
        return self._save(call_id, self._blobs.put(text.encode("utf-8", "backslashreplace")))

    def store_raw(self, call_id: str, data: bytes) -> str:
        """Stores the raw output of a command beside its text. Returns its reference."""
        return self._save(_build_raw_name(call_id), self._blobs.put(data))

    def store_offloaded(self, call_id: str, offloaded: OffloadedText) -> str:
        """Stores a text whose reference the result contains already. Returns that reference."""
        if offloaded.file is None:
            return self.store(call_id, offloaded.text or "")
        try:
            _append(offloaded.file, offloaded.tail)
            return self._save(call_id, _RAW_PREFIX + self._blobs.adopt(offloaded.file))
        except StoreError:
            with contextlib.suppress(OSError):
                os.unlink(offloaded.file)
            raise

    def open(self, call_id: str) -> int:
        """Opens a stored text. NOT_FOUND if the session has none of that id."""
        blob = find_output(self._database, call_id)
        try:
            if blob is not None:
                return self._blobs.open(self._to_text_blob(call_id, blob))
        except OSError:
            pass
        raise _build_missing_error(call_id)

    def raw(self, call_id: str) -> bytes:
        """The raw output of a command, as far as it was stored. NOT_FOUND if there is none."""
        blob = find_output(self._database, _build_raw_name(call_id)) or find_output(self._database, call_id)
        if blob is None:
            raise _build_missing_error(call_id)
        try:
            descriptor = self._blobs.open(blob.removeprefix(_RAW_PREFIX))
        except OSError:
            raise _build_missing_error(call_id) from None
        with open(descriptor, "rb") as file:
            return file.read()

    def _to_text_blob(self, call_id: str, blob: str) -> str:
        """Converts raw output to text on the first read. It may be large, and few outputs are read."""
        if not blob.startswith(_RAW_PREFIX):
            return blob
        descriptor = self._blobs.open(blob.removeprefix(_RAW_PREFIX))
        try:
            text = self._blobs.put_pieces(_clean_chunks(descriptor))
        finally:
            os.close(descriptor)
        self._save(_build_raw_name(call_id), blob)
        self._save(call_id, text)
        return text

    def _save(self, name: str, blob: str) -> str:
        save_output(self._database, name, blob)
        return build_output_reference(name)


def _build_raw_name(call_id: str) -> str:
    return f"{call_id}.raw"


def _build_missing_error(call_id: str) -> ToolError:
    return ToolError("NOT_FOUND", f"This session has no kept output {call_id[:80]!r}.")


def _append(path: str, data: bytes) -> None:
    try:
        with open(path, "ab") as file:
            file.write(data)
    except OSError as error:
        raise StoreError(f"what a command printed cannot be kept: {error.strerror}") from error


def _clean_chunks(descriptor: int) -> Iterator[bytes]:
    from handrail.process.output import Cleaner  # noqa: PLC0415  only for the output of commands

    cleaner, position = Cleaner(), 0
    while chunk := os.pread(descriptor, _CHUNK_BYTES, position):
        position += len(chunk)
        yield cleaner.feed(chunk).encode()
    yield cleaner.end().encode()
