"""The result of a tool call."""

from binascii import Error, a2b_base64
from typing import Any, Generic, Literal, TypeVar

from handrail.protocol.errors import ErrorInfo
from handrail.protocol.wire import Envelope, Wire

Data = TypeVar("Data")
MAX_IMAGE_BYTES = 5 * 1024 * 1024
_IMAGE_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_IMAGE_STARTS = (*_IMAGE_TYPES, b"RIFF")
OVERLAY_TIER = 3
"""The tier of a sandbox in which the changes of a command go into an overlay."""


class Artifacts(Envelope, frozen=True):
    """Files and commands of a call."""

    files_changed: tuple[str, ...] = ()
    """Relative in the workspace, absolute in an extra root."""
    commands_run: tuple[str, ...] = ()


class Attachment(Envelope, frozen=True):
    """A file or image that belongs to the result. `content` is base64."""

    type: Literal["file", "image"]
    path: str
    """The path of the file, relative in the workspace."""
    mime: str
    content: str | None = None


def find_image_type(data: bytes) -> str | None:
    """The media type of an image. None if it is none that models take."""
    if not data.startswith(_IMAGE_STARTS):
        return None
    webp = "image/webp" if data[8:12] == b"WEBP" else None
    return next((kind for start, kind in _IMAGE_TYPES.items() if data.startswith(start)), webp)


def detect_image_type(content: str) -> str | None:
    """The type of an image in base64, by its bytes. A provider rejects every request with a wrongly declared image."""
    try:
        return find_image_type(a2b_base64(content, strict_mode=True))
    except (Error, ValueError):
        return None


class SandboxUsed(Wire, frozen=True):
    """How a command was confined."""

    tier: int
    """3 overlay (can be undone), 2 namespaces, 1 Landlock, 0 none."""
    net: Literal["none", "listed", "open"]
    """The network that it had. `listed`: only `hosts`, through a proxy."""
    undo: Literal["read-only", "layer", "snapshot", "none"]
    """`read-only`: it could change nothing. `layer`: all changes in the workspace can be undone. `snapshot`: changes
    can be undone except `not_covered`. `none`: changes cannot be undone."""
    not_covered: tuple[str, ...] = ()
    """What undo does not cover, in words: files that git ignores, data sent to a host."""
    no_layer: str = ""
    """Why it had no overlay, although it could change something."""
    hosts: tuple[str, ...] = ()
    """The hosts that it could reach: `example.org:443`."""
    joined: bool = False
    """Whether it shared the network of the session's background processes, so that it could send them requests."""
    hidden: int = 0
    """How many credentials and sockets of the workspace were hidden from it."""
    gaps: tuple[str, ...] = ()
    """What this tier does not confine, in words."""
    per_process: tuple[str, ...] = ()
    """Limits that hold for each process on its own."""
    tree: tuple[str, ...] = ()
    """Limits that hold for all its processes together."""


class Diagnostic(Wire, frozen=True, omit_defaults=False):
    """A problem that a language server sees in a file."""

    file: str
    """Relative in the workspace."""
    line: int
    """From 0."""
    character: int
    """From 0, in characters."""
    severity: Literal["error", "warning", "information", "hint"]
    message: str
    source: str
    """The program that says it."""
    code: str
    """The name of the rule. Empty if it has none."""


class NewDiagnostics(Wire, frozen=True):
    """The problems that a change caused."""

    state: Literal["checked", "checking", "unchecked"]
    """`checking`: a warning event follows if there are any. `unchecked`: the language server did not answer."""
    added: tuple[Diagnostic, ...] = ()
    fixed: int = 0
    """How many problems are gone."""


class Meta(Wire, frozen=True):
    """Facts about a result besides its content."""

    truncated: bool
    """Whether `content` shows only a part."""
    returned: int | None = None
    """How many lines, entries or matches the result has."""
    total: int | None = None
    """How many there are in all, if known."""
    total_is_lower_bound: bool = False
    """There may be more than `total`."""
    files: int | None = None
    """How many files have matches."""
    protected: int | None = None
    """How many names a search skipped because policy protects them, up to the last result shown. The list of them is
    that of the last command. Absent: no command ran yet. Their content plays no part."""
    engine: Literal["ripgrep", "python"] | None = None
    answered_by: Literal["preview", "grant"] | None = None
    """Who approved the call instead of a person. `preview`: it changed nothing, or only caches. `grant`: the grant for
    plain edits covers it."""
    next_offset: int | None = None
    """The `offset` of the next page."""
    output: str | None = None
    """`@output/…`: the stored whole text, for `read`."""
    characters: int | None = None
    """The length of the whole text."""
    raw: str | None = None
    """`@output/…`: the exact bytes that a command printed, if they were cleaned for the model."""
    unread: bool = False
    """The file was overwritten without having been read in this session."""
    in_place: bool = False
    """The file was written through its hard links instead of being replaced."""
    strategy: str | None = None
    """How `edit` found the place: `exact`, or the difference that it ignored: `line-trimmed`, `indentation-flexible`,
    `trimmed-boundary`, `whitespace-normalised`, `typography`, `line-numbers`, `code-fences`,
    `escape-normalised`, `elision`, `context-aware`, `block-anchor`. `multi_edit` has one for each edit, in its data."""
    occurrences: int | None = None
    """How many places `edit` changed, or all edits of `multi_edit` together."""
    matched_lines: tuple[tuple[int, int], ...] = ()
    """First and last line of each place that `edit` changed, before the change. Of many places only the first ones."""
    undo: int | None = None
    """The number of the change, for undo."""
    limits: tuple[str, ...] = ()
    """The limits that were hit."""
    sandbox: SandboxUsed | None = None
    """How a command was confined."""
    diagnostics: NewDiagnostics | None = None
    """The problems that the change caused. Null: no language server looked."""


class ToolResult(Envelope, Generic[Data], frozen=True):
    """The result of a call. Every call has exactly one."""

    tool_call_id: str
    name: str
    """The tool that ran, or the name that was called."""
    version: str
    ok: bool
    """Whether the tool succeeded. A command that exits non-zero is ok."""
    title: str
    """For people: what the call is."""
    summary: str
    """For people: the outcome, in one line."""
    content: str
    """For the model."""
    data: Data | None
    """For programs: as the tool's output schema says. Null: the call failed early."""
    error: ErrorInfo | None
    """Null when ok."""
    meta: Meta
    artifacts: Artifacts
    attachments: tuple[Attachment, ...]
    warnings: tuple[str, ...]
    """What went wrong although the call succeeded."""
    duration_ms: float
    """Milliseconds from the call to its result."""


def render_for_model(result: ToolResult[Any]) -> str:
    """The content, followed by notes that it does not hold: where the next page begins, and the warnings.

    Without the first, a model takes a page for the whole file. Most results have no notes.
    """
    following = result.meta.next_offset
    if following is None and not result.warnings:
        return result.content
    page = () if following is None else (f"{result.summary}. Continue with offset {following}.",)
    notes = [f"[{note}]\n" for note in (*page, *result.warnings) if note not in result.content]
    separator = "\n" if notes and result.content and not result.content.endswith("\n") else ""
    return result.content + separator + "".join(notes)
