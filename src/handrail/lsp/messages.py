"""The messages of the Language Server Protocol that handrail uses."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

MAX_MESSAGE_BYTES = 32 << 20
_MAX_HEADER_BYTES = 4 << 10
_HEADER_END = b"\r\n\r\n"
_NULL = Raw(b"null")
_Number = Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
CONTENT_MODIFIED, SERVER_CANCELLED = -32801, -32802
"""Error codes of a request that can be repeated."""
METHOD_NOT_FOUND = -32601


class LspPosition(Struct, frozen=True, order=True):
    """A place in a text. `character` counts UTF-16 code units."""

    line: _Number
    character: _Number


class LspRange(Struct, frozen=True, order=True):
    start: LspPosition
    end: LspPosition


class LspLocation(Struct, frozen=True, rename="camel"):
    """A Location or a LocationLink."""

    uri: str = ""
    range: LspRange | None = None
    target_uri: str = ""
    target_selection_range: LspRange | None = None


class LspDiagnostic(Struct, frozen=True):
    range: LspRange
    message: str
    severity: int | None = None
    source: str | None = None
    code: Any = None


class DiagnosticReport(Struct, frozen=True):
    """The answer to a request for diagnostics."""

    items: tuple[LspDiagnostic, ...] = ()


class PublishedDiagnostics(Struct, frozen=True):
    """The diagnostics that a server sends on its own."""

    uri: str
    diagnostics: tuple[LspDiagnostic, ...]
    version: int | None = None


class LspHover(Struct, frozen=True):
    contents: Any = None


class LspSymbol(Struct, frozen=True, rename="camel"):
    """A DocumentSymbol, a SymbolInformation or a WorkspaceSymbol."""

    name: str
    kind: int = 0
    container_name: str | None = None
    location: LspLocation | None = None
    selection_range: LspRange | None = None
    children: tuple["LspSymbol", ...] | None = None


class LspTextEdit(Struct, frozen=True, rename="camel"):
    range: LspRange
    new_text: str


class _EditedDocument(Struct, frozen=True):
    uri: str


class _DocumentEdit(Struct, frozen=True, rename="camel"):
    """A TextDocumentEdit. A file operation has a kind."""

    kind: str | None = None
    text_document: _EditedDocument | None = None
    edits: tuple[LspTextEdit, ...] = ()


class LspWorkspaceEdit(Struct, frozen=True, rename="camel"):
    changes: dict[str, tuple[LspTextEdit, ...]] | None = None
    document_changes: tuple[_DocumentEdit, ...] | None = None

    @property
    def has_file_operations(self) -> bool:
        return any(one.kind is not None for one in self.document_changes or ())

    def list_edits(self) -> Iterator[tuple[str, tuple[LspTextEdit, ...]]]:
        """The edits of each document, by its address."""
        for one in self.document_changes or ():
            if one.text_document is not None:
                yield one.text_document.uri, one.edits
        if self.document_changes is None:
            yield from (self.changes or {}).items()


class ResponseError(Struct, frozen=True):
    code: int = 0
    message: str = ""


class LspMessage(Struct, frozen=True):
    """A request, a notification or a response."""

    id: int | str | None = None
    method: str | None = None
    params: Raw = _NULL
    result: Raw = _NULL
    error: ResponseError | None = None


class NonsenseError(Exception):
    """The server sent bytes that are not the protocol. The text says which."""


_decode_message = msgspec.json.Decoder(LspMessage).decode


def parse_message(body: bytes) -> LspMessage:
    """NonsenseError if it is no message."""
    try:
        return _decode_message(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NonsenseError("it sent a message that is not JSON-RPC") from None


def encode_frame(message: dict[str, Any]) -> bytes:
    body = msgspec.json.encode({"jsonrpc": "2.0", **message})
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameReader:
    """Splits a stream into the bodies of messages. It holds at most one message."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._length: int | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """NonsenseError if the stream is not the protocol, or a message too long."""
        self._data += data
        while (body := self._take()) is not None:
            yield body

    def _take(self) -> bytes | None:
        if self._length is None:
            end = self._data.find(_HEADER_END)
            if end > _MAX_HEADER_BYTES or (end < 0 and len(self._data) > _MAX_HEADER_BYTES):
                raise NonsenseError("it writes to its output what is no message")
            if end < 0:
                return None
            self._length = _parse_length(bytes(self._data[:end]))
            del self._data[: end + len(_HEADER_END)]
        if len(self._data) < self._length:
            return None
        body, self._length = bytes(self._data[: self._length]), self._clear(self._length)
        return body

    def _clear(self, length: int) -> None:
        del self._data[:length]


def _parse_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit() and len(value) < 20:
            length = int(value)
            if length > MAX_MESSAGE_BYTES:
                raise NonsenseError(f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes")
            return length
    raise NonsenseError("it writes to its output what is no message")
