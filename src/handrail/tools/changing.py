"""What a tool tells of a file that it changed."""

from handrail.edit.diff import Diff
from handrail.protocol.change import Change, ChangeSet
from handrail.workspace.replace import Current, Written


def change_set(real: str, before: Current | None, written: Written, diff: Diff) -> ChangeSet | None:
    """The change of one file; None where its bytes are the same."""
    if before is not None and before.hash == written.hash:
        return None
    change = Change(
        path=real,
        action="created" if before is None else "modified",
        before=before.hash if before else None,
        after=written.hash,
        size=written.size,
        mode=written.mode,
        added=diff.added,
        removed=diff.removed,
    )
    return ChangeSet(changes=(change,))
