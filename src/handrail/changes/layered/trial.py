"""A command that was tried in a layer: how it went, and what every file would become."""

import msgspec

from handrail.process.ran import Ran
from handrail.protocol.change import Change
from handrail.protocol.result import SandboxUsed
from handrail.store.change_log import Step


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is to be brought where its bytes alone do not say."""

    in_place: bool = False
    """Written through the file that is there, since it has other names that share it."""
    linked_to: bytes | None = None
    """The path that it is another name of: one that another step brings, or that no step is about."""
    apart: bool = False
    """A file of its own, though the layer has it as another name of one."""
    mtime_ns: int | None = None
    attributes: dict[str, bytes] = {}
    """Extended attributes of the user's own."""


PLAIN = Manner()


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """What a layer holds, compared with what it lies over."""

    started: int
    """When the layer was made, by the file system's clock: what has a later change time was changed by others."""
    steps: tuple[Step, ...] = ()
    manners: tuple[Manner, ...] = ()
    """One a step."""
    changes: tuple[Change, ...] = ()
    """One a step, in their order."""
    diffs: tuple[str, ...] = ()
    """One a step; empty for what is no text, or too much, and before `with_diffs` made them."""
    unkept: tuple[str, ...] = ()
    """What cannot be kept, in words."""
    outdated: tuple[bytes, ...] = ()
    """Paths of steps that others changed while the command ran: what it saw there is not what is there now."""
    contents: dict[str, bytes] = {}
    """New contents by their hashes, of a file tool that ran on copies only: they are stored nowhere."""
    expected: tuple[bytes, ...] = ()
    """What trials that it lies on change first, with the folders that is in: no surprise when it is kept after them."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How a command went in its layer."""

    ran: Ran
    examined: Examined
    blocked: tuple[str, ...] = ()
    """What it tried to reach, in words."""
    sandbox: SandboxUsed
    """How it was confined."""
