"""What is known about the steps of a change set besides the steps."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from handrail.changes.holding import StagingDir
from handrail.workspace.file_state import PathState


class OverlayFile(NamedTuple):
    """A file of an overlay: the open folder on top of it, and the path below that."""

    top: int
    path: str


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is to be brought where its state alone does not say."""

    source: OverlayFile | None = None
    """The file of an overlay that it is; None: it is made from what was kept."""
    in_place: bool | None = None
    """Whether it is written through the file that is there, for all its names. None: where it has several."""
    linked_to: bytes | None = None
    """The path that it becomes another name of."""
    allow_copy: bool = False
    """Whether it may be a file of its own where that path has other bytes."""
    mtime_ns: int | None = None
    attributes: dict[str, bytes] | None = None
    """Extended attributes of the user's own; None: those of the file that is there."""


PLAIN_PLACEMENT = Placement()


class ApplyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about steps besides the steps."""

    placements: Mapping[bytes, Placement] = {}
    """Of the files whose states do not say all."""
    known_states: dict[bytes, PathState] = {}
    """What was seen at the paths just now. What is there is looked at once more when it is taken out."""
    unlocked_dirs: Mapping[bytes, int] = {}
    """Folders that have to be opened for the time, with their modes."""
    require_empty_dirs: bool = False
    """Whether a folder that is to go and has something in it is a conflict, and does not just stay."""
    staging: StagingDir | None = None
