"""A change set: what a call did to files, as data."""

from typing import Literal

from handrail.protocol.wire import Wire

Action = Literal["created", "modified", "deleted", "renamed", "mode", "link"]


class Change(Wire, frozen=True):
    """One path that is different now."""

    path: str
    """Relative in the workspace, absolute in an extra root."""
    action: Action
    before: str | None = None
    """Hash of the bytes before; None where there was no file."""
    after: str | None = None
    """Hash of the bytes now; None where there is no file."""
    size: int | None = None
    """Bytes now."""
    mode: int | None = None
    """Permission bits now."""
    added: int | None = None
    """Lines."""
    removed: int | None = None
    """Lines."""
    binary: bool = False
    layout_only: bool = False
    """Only white space differs."""
    renamed_from: str | None = None
    """The path it had before."""


class ChangeSet(Wire, frozen=True):
    """All changes of one call; `number` is what undo takes."""

    changes: tuple[Change, ...]
    number: int | None = None
    undoable: bool = False
    """Whether undo can take it back."""
