"""A change set before it is made."""

import msgspec

from handrail.protocol.change import Change
from handrail.store.change_log import Step


class Planned(msgspec.Struct, frozen=True):
    """A change set that is about to be made."""

    tool: str
    summary: str
    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    diffs: tuple[str, ...]
    """One a step."""
    undoes: tuple[int, ...] = ()
