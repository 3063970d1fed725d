"""A change set: what a call did to files, as data."""

from typing import Literal

from handrail.protocol.wire import Wire

Action = Literal["created", "modified", "deleted", "renamed", "mode", "link"]


class Change(Wire, frozen=True):
    """One path that is different now."""

    path: str
    action: Action
    before: str | None = None
    """Hash of the bytes before; None where there was no file."""
    after: str | None = None
    size: int | None = None
    mode: int | None = None
    added: int | None = None
    removed: int | None = None
    binary: bool = False
    layout_only: bool = False
    renamed_from: str | None = None


class ChangeSet(Wire, frozen=True):
    """All changes of one call; `number` is what undo takes."""

    changes: tuple[Change, ...]
    number: int | None = None
    undoable: bool = False
