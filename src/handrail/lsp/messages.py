"""The parts of the Language Server Protocol that handrail uses, as types."""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct

_Number = Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
_NULL = Raw(b"null")


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


class LspPosition(Struct, frozen=True, order=True):
    """A place in a text. `character` counts UTF-16 code units."""

    line: _Number
    character: _Number


class LspRange(Struct, frozen=True, order=True):
    start: LspPosition
    end: LspPosition


class LspLocation(Struct, frozen=True):
    uri: str
    range: LspRange | None = None


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


class WorkProgress(Struct, frozen=True):
    """A notification about long work."""

    value: dict[str, Any]


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
    """A TextDocumentEdit, or a file operation without a document."""

    text_document: _EditedDocument | None = None
    edits: tuple[LspTextEdit, ...] = ()


class LspWorkspaceEdit(Struct, frozen=True, rename="camel"):
    changes: dict[str, tuple[LspTextEdit, ...]] | None = None
    document_changes: tuple[_DocumentEdit, ...] | None = None

    def list_edits(self) -> Iterator[tuple[str, tuple[LspTextEdit, ...]]]:
        """The edits of each document, by its address. The address of a file operation is empty."""
        for one in self.document_changes or ():
            yield one.text_document.uri if one.text_document is not None else "", one.edits
        if self.document_changes is None:
            yield from (self.changes or {}).items()
