"""Changes of files, and change sets."""

from typing import Literal

from handrail.protocol.wire import Time, Wire

Action = Literal["created", "modified", "deleted", "renamed", "mode", "link"]
Kind = Literal["file", "link", "folder"]


class State(Wire, frozen=True):
    """What a path is or was, as far as undo can tell and bring back."""

    kind: Kind
    hash: str = ""
    """Of a file's bytes or a link's target; a folder has none."""
    size: int = 0
    mode: int | None = None
    """Permission bits; a link has none."""


class Change(Wire, frozen=True):
    """One path that is different now."""

    path: str
    """Relative in the workspace, absolute in an extra root."""
    action: Action
    kind: Kind = "file"
    """What it is; of what was deleted, what it was."""
    before: str | None = None
    """Hash of the bytes before; None where there was no file."""
    after: str | None = None
    """Hash of the bytes now; None where there is no file."""
    size: int | None = None
    """Bytes now."""
    mode: int | None = None
    """Permission bits now."""
    added: int | None = None
    """Lines. None where nobody counted them: it is no text, or there was too much to be compared line by line, and then
    there is no diff either."""
    removed: int | None = None
    """Lines; None as for `added`."""
    binary: bool = False
    layout_only: bool = False
    """Only white space differs."""
    renamed_from: str | None = None
    """The path it had before. That path is in the change set too, as deleted."""
    replaces: Kind | None = None
    """What was there before, where it was another kind of thing: all of that is gone."""
    executable: bool = False
    """Whether it can be run as a program now, and could not before."""
    target: str | None = None
    """Where a link leads, as it is written in it."""
    outside: bool = False
    """Whether a link leads out of the folders that the session works in."""
    shared: bool = False
    """Whether the file has other names (hard links), which get the change too."""
    read_only: bool = False
    """Whether a file is changed whose mode let nobody write it (0444)."""


class ChangeSet(Wire, frozen=True):
    """All changes of one call; `number` is what undo takes."""

    changes: tuple[Change, ...]
    number: int | None = None
    undoable: bool = False
    """Whether it can be undone."""
    undoes: tuple[int, ...] = ()
    """The change sets that it undoes."""
    not_covered: tuple[str, ...] = ()
    """What the call did, or may have done, that undo does not cover, in words."""


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
    """What the call did, or may have done, that undo does not cover, in words."""


def classify_change(before: State | None, after: State | None) -> Action:
    """What happened to a path, in a word."""
    if before is None:
        return "created"
    if after is None:
        return "deleted"
    if "link" in {before.kind, after.kind}:
        return "link"
    return "mode" if (before.kind, before.hash) == (after.kind, after.hash) else "modified"
