"""Changes of files: made by a call, or shown in its preview."""

from typing import Literal, NamedTuple

import msgspec

from handrail.protocol.wire import Time, Wire

Action = Literal["created", "modified", "deleted", "renamed", "mode", "link"]
Kind = Literal["file", "link", "folder"]
LineOriginKind = Literal["made", "outside", "before", "lost"]


class State(Wire, frozen=True):
    """What a path is or was, as far as undo can restore it."""

    kind: Kind
    hash: str = ""
    """Of the content of a file or the target of a link. A folder has none."""
    size: int = 0
    mode: int | None = None
    """Permission bits. A link has none."""


class Change(Wire, frozen=True):
    """One changed path."""

    path: str
    """Relative in the workspace, absolute in an extra root."""
    action: Action
    kind: Kind = "file"
    """What it is, or was before it was deleted."""
    before: str | None = None
    """Hash of the content before. None: there was no file."""
    after: str | None = None
    """Hash of the content now. None: there is no file."""
    size: int | None = None
    """Bytes now."""
    mode: int | None = None
    """Permission bits now."""
    added: int | None = None
    """Lines. None: the file is binary or too large to compare, so it has no diff."""
    removed: int | None = None
    """Lines. None as in `added`."""
    binary: bool = False
    layout_only: bool = False
    """Only whitespace differs."""
    renamed_from: str | None = None
    """The path before. It is in the change set too, as deleted."""
    replaces: Kind | None = None
    """The kind that it had before, if another one. Its whole content is gone."""
    executable: bool = False
    """Whether it became executable."""
    target: str | None = None
    """The target of a link, as written."""
    outside: bool = False
    """Whether a link leads out of the roots."""
    shared: bool = False
    """Whether the file has hard links, which get the change too."""
    read_only: bool = False
    """Whether the mode of the file allowed no writing (0444)."""


class ChangeSet(Wire, frozen=True):
    """All changes of one call. `number` is for undo."""

    changes: tuple[Change, ...]
    number: int | None = None
    undoable: bool = False
    """Whether it can be undone."""
    undoes: tuple[int, ...] = ()
    """The change sets that it undoes."""
    not_covered: tuple[str, ...] = ()
    """Effects of the call that undo does not cover, in words."""


class ChangeRecord(Wire, frozen=True, omit_defaults=False):
    """A change set as the workspace's change log lists it."""

    number: int
    session_id: str
    tool_call_id: str
    tool: str
    summary: str
    time: Time
    in_effect: bool
    """Whether it has not been undone."""
    undone_by: int | None
    undoes: tuple[int, ...]
    undoable: bool
    changes: tuple[Change, ...]
    not_covered: tuple[str, ...] = ()
    """Effects of the call that undo does not cover, in words."""


class PreviewRun(Wire, frozen=True):
    """The run of a command in an overlay before its approval. Nothing of it is committed yet."""

    sealed: str
    """The id of the stored preview: its output and the new content of every file."""
    exit_code: int | None
    """As a shell reports it. Null: the command was stopped."""
    duration_ms: float
    ending: str = "exit"
    """`exit`, or why it was stopped: `timeout`, `memory`, `processes`, `cancelled`."""
    changes: tuple[Change, ...] = ()
    """The changes, the most harmful first. Of very many, the first ones."""
    files: int = 0
    deleted: int = 0
    added: int = 0
    """Lines."""
    removed: int = 0
    """Lines."""
    lines: int = 0
    """Lines of its output."""
    last_line: str = ""
    blocked: tuple[str, ...] = ()
    """Connections that it tried, in words. A preview has no network."""
    unkept: tuple[str, ...] = ()
    """What cannot be committed, in words: a socket, a pipe."""
    on: tuple[str, ...] = ()
    """Earlier previews and calls of its batch that it builds on. It is committed only if all of them are."""


PREVIEW_GONE = ""
"""Stands among outdated paths if the stored preview itself is gone."""


class Preview(Wire, frozen=True):
    """The effect of a call, shown before the answer."""

    kind: Literal["diff", "run", "input", "none"]
    """`diff`: changes of a file. `run`: the command ran in an overlay. `input`: input for a program. `none`: no
    preview, and `text` says why."""
    text: str
    """The diff, for `diff` and `run`."""
    truncated: bool = False
    """Whether `text` is cut."""
    output: str = ""
    """The output of the preview, shortened."""
    tried: PreviewRun | None = None
    time: Time | None = None
    """When it was made. Files may have changed since."""
    read_only: bool = False
    """Whether there is no preview because the command only reads."""

    @property
    def id(self) -> str | None:
        """The stored preview of a command. None: the command did not run."""
        return self.tried.sealed if self.tried is not None else None


class ChangeOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The change set that a line comes from."""

    number: int
    time: Time
    session_id: str
    tool_call_id: str
    tool: str
    summary: str
    undoable: bool


class LineOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a line, as far as it is known."""

    kind: LineOriginKind
    """`made`: by `entry`. `outside`: by others after `entry`. `before`: older than the first change set.
    `lost`: unknown, because the contents of `entry` are no longer kept."""
    entry: ChangeOrigin | None = None
    path: bytes
    """The path of the file then."""
    line: int
    """The number of the line then."""
    outside: tuple[int, ...] = ()
    """Others changed the file, but not the line, after these sets."""
    brought_back: tuple[int, ...] = ()
    """These sets undid a change of the line."""


class StoredDiff(NamedTuple):
    """The diff of one or several change sets."""

    numbers: tuple[int, ...]
    text: str
    truncated: bool
    """Whether a part of it was too long to be kept."""
