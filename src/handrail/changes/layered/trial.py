"""The preview of a command that ran in an overlay: how it went, and what every file would become."""

import msgspec

from handrail.process.ran import CommandResult
from handrail.protocol.changes import Change
from handrail.protocol.results import SandboxUsed
from handrail.store.change_log import Step


class OverlayPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is to be brought where its bytes alone do not say."""

    in_place: bool = False
    """Written through the file that is there, since it has other names that share it."""
    linked_to: bytes | None = None
    """The path that it is another name of: one that another step brings, or that no step is about."""
    force_copy: bool = msgspec.field(default=False, name="apart")
    """A file of its own, though the overlay has it as another name of one."""
    mtime_ns: int | None = None
    attributes: dict[str, bytes] = {}
    """Extended attributes of the user's own."""


PLAIN_OVERLAY_PLACEMENT = OverlayPlacement()


class OverlayChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What an overlay holds, compared with what it lies over."""

    started: int
    """When the overlay was made, by the file system's clock: what has a later change time was changed by others."""
    steps: tuple[Step, ...] = ()
    manners: tuple[OverlayPlacement, ...] = ()
    """One a step."""
    changes: tuple[Change, ...] = ()
    """One a step, in their order."""
    diffs: tuple[str, ...] = ()
    """One a step; empty for what is no text, or too much, and before `with_diffs` made them."""
    unkept: tuple[str, ...] = ()
    """What cannot be committed, in words."""
    outdated: tuple[bytes, ...] = ()
    """Paths of steps that others changed while the command ran: what it saw there is not what is there now."""
    contents: dict[str, bytes] = {}
    """New contents by their hashes, of a file tool that ran on copies only: they are stored nowhere."""
    expected: tuple[bytes, ...] = ()
    """What the previews below it change first, with the folders of that: expected when it is committed after them."""


class CommandPreview(msgspec.Struct, frozen=True, kw_only=True):
    """How a command went in its overlay."""

    ran: CommandResult
    examined: OverlayChanges
    blocked: tuple[str, ...] = ()
    """What it tried to reach, in words."""
    sandbox: SandboxUsed
    """How it was confined."""
