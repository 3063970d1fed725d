"""Outputs that are stored beside the journal."""

import contextlib
import os
from collections.abc import Iterator

from handrail.protocol.errors import StoreError, ToolError
from handrail.store.blobs import Blobs
from handrail.store.database import Database
from handrail.store.transcript import find_output, save_output
from handrail.tools.text import build_output_reference
from handrail.tools.tool import OffloadedText

_PRINTED = "printed:"
"""What stands before the name of a blob that holds what a command printed, byte for byte."""
_PIECE_BYTES = 1 << 20


class StoredOutputs:
    """The large texts of one session."""

    def __init__(self, blobs: Blobs, database: Database) -> None:
        self._blobs = blobs
        self._database = database

    def store(self, call_id: str, text: str) -> str:
        """Stores the text; the reference that `read` takes."""
        return self._note(call_id, self._blobs.put(text.encode("utf-8", "backslashreplace")))

    def store_raw(self, call_id: str, data: bytes) -> str:
        """Stores what a command printed, byte for byte, beside the text that was made of it; the reference to it."""
        return self._note(_raw(call_id), self._blobs.put(data))

    def store_offloaded(self, call_id: str, kept: OffloadedText) -> str:
        """Stores what a result names already; the reference that it names it by."""
        if kept.file is None:
            return self.store(call_id, kept.text or "")
        try:
            _append(kept.file, kept.tail)
            return self._note(call_id, _PRINTED + self._blobs.adopt(kept.file))
        except StoreError:
            with contextlib.suppress(OSError):
                os.unlink(kept.file)
            raise

    def open(self, call_id: str) -> int:
        """A descriptor of the whole text; NOT_FOUND when this session has none of that id."""
        blob = find_output(self._database, call_id)
        try:
            if blob is not None:
                return self._blobs.open(self._as_text(call_id, blob))
        except OSError:
            pass
        raise _missing(call_id)

    def raw(self, call_id: str) -> bytes:
        """What a command printed, byte for byte, as far as it was kept; NOT_FOUND when nothing was."""
        blob = find_output(self._database, _raw(call_id)) or find_output(self._database, call_id)
        if blob is None:
            raise _missing(call_id)
        try:
            descriptor = self._blobs.open(blob.removeprefix(_PRINTED))
        except OSError:
            raise _missing(call_id) from None
        with open(descriptor, "rb") as file:
            return file.read()

    def _as_text(self, call_id: str, blob: str) -> str:
        """What was printed is made a text when somebody first wants to read it: few do, and it may be large."""
        if not blob.startswith(_PRINTED):
            return blob
        descriptor = self._blobs.open(blob.removeprefix(_PRINTED))
        try:
            text = self._blobs.put_pieces(_text_pieces(descriptor))
        finally:
            os.close(descriptor)
        self._note(_raw(call_id), blob)
        self._note(call_id, text)
        return text

    def _note(self, name: str, blob: str) -> str:
        save_output(self._database, name, blob)
        return build_output_reference(name)


def _raw(call_id: str) -> str:
    return f"{call_id}.raw"


def _missing(call_id: str) -> ToolError:
    return ToolError("NOT_FOUND", f"This session has no kept output {call_id[:80]!r}.")


def _append(path: str, data: bytes) -> None:
    try:
        with open(path, "ab") as file:
            file.write(data)
    except OSError as error:
        raise StoreError(f"what a command printed cannot be kept: {error.strerror}") from error


def _text_pieces(descriptor: int) -> Iterator[bytes]:
    from handrail.process.output import Cleaner  # noqa: PLC0415  only for what commands printed

    cleaner, position = Cleaner(), 0
    while piece := os.pread(descriptor, _PIECE_BYTES, position):
        position += len(piece)
        yield cleaner.feed(piece).encode()
    yield cleaner.end().encode()
