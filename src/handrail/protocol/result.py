"""The one shape of a result."""

from typing import Generic, Literal, TypeVar

from handrail.protocol.error import ErrorInfo
from handrail.protocol.wire import Envelope, Wire

Data = TypeVar("Data")


class Artifacts(Envelope, frozen=True):
    """What the call left behind."""

    files_changed: tuple[str, ...] = ()
    commands_run: tuple[str, ...] = ()


class Attachment(Envelope, frozen=True):
    """A file or picture that goes with the result; `content` is base64."""

    type: Literal["file", "image"]
    path: str
    mime: str
    content: str | None = None


class Meta(Wire, frozen=True):
    """How the answer relates to the whole."""

    truncated: bool
    returned: int | None = None
    total: int | None = None
    total_is_lower_bound: bool = False
    next_offset: int | None = None
    output: str | None = None
    """`@output/…`: where `read` finds the whole text."""
    characters: int | None = None
    """How long the whole text is."""
    unread: bool = False
    """Written over without having been read in this session."""
    in_place: bool = False
    """Written through its hard links instead of being replaced."""
    limits: tuple[str, ...] = ()
    """The limits that fired."""


class ToolResult(Envelope, Generic[Data], frozen=True):
    """What a call came to. Every call has exactly one."""

    tool_call_id: str
    name: str
    version: str
    ok: bool
    title: str
    summary: str
    content: str
    data: Data | None
    error: ErrorInfo | None
    meta: Meta
    artifacts: Artifacts
    attachments: tuple[Attachment, ...]
    warnings: tuple[str, ...]
    duration_ms: float
