"""The difference of a call to earlier calls of its workspace, for the person who is asked."""

from handrail.protocol.wire import Wire


class Novelty(Wire, frozen=True):
    """How a call differs from what was approved and changed in its workspace before."""

    approvals: int = 0
    """How many earlier approvals its hosts and programs were compared with."""
    changes: int = 0
    """How many earlier change sets its deletions and folders were compared with."""
    deletes: bool = False
    """Whether it deletes, and none of them did."""
    hosts: tuple[str, ...] = ()
    """The hosts that none of them opened."""
    programs: tuple[str, ...] = ()
    """The programs that none of them names, without those that are proven to only read."""
    folders: tuple[str, ...] = ()
    """The folders in which nothing was changed: `infra/`."""
