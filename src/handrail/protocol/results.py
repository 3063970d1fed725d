"""The result of a tool call."""

from typing import Any, Generic, Literal, TypeVar

from handrail.protocol.errors import ErrorInfo
from handrail.protocol.wire import Envelope, Wire

Data = TypeVar("Data")


class Artifacts(Envelope, frozen=True):
    """What the call left behind."""

    files_changed: tuple[str, ...] = ()
    """Relative in the workspace, absolute in an extra root."""
    commands_run: tuple[str, ...] = ()


class Attachment(Envelope, frozen=True):
    """A file or picture that goes with the result; `content` is base64."""

    type: Literal["file", "image"]
    path: str
    """Where the file is; relative in the workspace."""
    mime: str
    content: str | None = None


class SandboxUsed(Wire, frozen=True):
    """How a command was confined."""

    tier: int
    """3 an overlay that can be undone, 2 namespaces, 1 Landlock, 0 none."""
    net: Literal["none", "listed", "open"]
    """Whether it could reach a network; `listed`: only `hosts`, through a proxy."""
    undo: Literal["read-only", "layer", "snapshot", "none"]
    """`read-only`: it could change nothing. `layer`: whatever it changed in the workspace can be undone.
    `snapshot`: what it changed can be undone but for `not_covered`. `none`: what it changed cannot be."""
    not_covered: tuple[str, ...] = ()
    """What undo does not cover, in words: files that git ignores, what a listed host was told."""
    no_layer: str = ""
    """Why it had no overlay, in words, where it could have changed something."""
    hosts: tuple[str, ...] = ()
    """What it could reach: `example.org:443`."""
    hidden: int = 0
    """How many credentials and sockets in the workspace it did not see."""
    gaps: tuple[str, ...] = ()
    """What this tier does not give, in words."""
    per_process: tuple[str, ...] = ()
    """Limits that hold for each process on its own."""
    tree: tuple[str, ...] = ()
    """Limits that hold for all its processes together."""


class Meta(Wire, frozen=True):
    """How the answer relates to the whole."""

    truncated: bool
    """Whether there is more than `content` shows."""
    returned: int | None = None
    """How many lines, entries or matches there are in the answer."""
    total: int | None = None
    """How many there are in all, where that is known."""
    total_is_lower_bound: bool = False
    """There are more than `total`, or nobody counted."""
    files: int | None = None
    """How many files the matches of a search are in."""
    protected: int | None = None
    """How many names a search passed over because policy withholds them, up to the last result shown; absent where that
    could not be counted in time. It says nothing of what is in them."""
    engine: Literal["ripgrep", "python"] | None = None
    """What searched."""
    next_offset: int | None = None
    """The `offset` of the next page."""
    output: str | None = None
    """`@output/…`: where `read` finds the whole text."""
    characters: int | None = None
    """How long the whole text is."""
    raw: str | None = None
    """`@output/…`: what a command printed, byte for byte, where it was cleaned for the model."""
    unread: bool = False
    """Written over without having been read in this session."""
    in_place: bool = False
    """Written through its hard links instead of being replaced."""
    strategy: str | None = None
    """How `edit` found the place: `exact`, or what had to be forgiven: `line-trimmed`, `indentation-flexible`,
    `trimmed-boundary`, `whitespace-normalised`, `typography`, `line-numbers`, `code-fences`,
    `escape-normalised`, `elision`, `context-aware`, `block-anchor`. `multi_edit` has one for each edit, in its data."""
    occurrences: int | None = None
    """How many places `edit` changed, or all edits of `multi_edit` together."""
    matched_lines: tuple[tuple[int, int], ...] = ()
    """The first and the last line of each place that `edit` changed, as they were before; of many only the first."""
    undo: int | None = None
    """The number to undo the change by."""
    limits: tuple[str, ...] = ()
    """The limits that fired."""
    sandbox: SandboxUsed | None = None
    """How a command was confined."""


class ToolResult(Envelope, Generic[Data], frozen=True):
    """What a call came to. Every call has exactly one."""

    tool_call_id: str
    """The call that this is the result of."""
    name: str
    """The tool that ran, or what was called."""
    version: str
    """The version of the tool that ran."""
    ok: bool
    """True: the tool did it. A command that exits non-zero is ok."""
    title: str
    """For people: what the call is."""
    summary: str
    """For people: what came of it, in one line."""
    content: str
    """For the model: what it reads."""
    data: Data | None
    """For programs: as the tool's output schema says; null when the call failed early."""
    error: ErrorInfo | None
    """Null when ok."""
    meta: Meta
    artifacts: Artifacts
    attachments: tuple[Attachment, ...]
    warnings: tuple[str, ...]
    """What is not as it should be, although the call succeeded."""
    duration_ms: float
    """Milliseconds from the call to its result."""


def render_for_model(result: ToolResult[Any]) -> str:
    """The content, followed by notes that it does not hold: where the next page begins, and the warnings.

    Without the first, a model takes a page for the whole file. Most results have no notes.
    """
    following = result.meta.next_offset
    if following is None and not result.warnings:
        return result.content
    page = () if following is None else (f"{result.summary}. Go on with offset {following}.",)
    notes = [f"[{note}]\n" for note in (*page, *result.warnings) if note not in result.content]
    separator = "\n" if notes and result.content and not result.content.endswith("\n") else ""
    return result.content + separator + "".join(notes)
