"""A change set before it is made."""

import msgspec

from handrail.edit.diff import Diff
from handrail.protocol.changes import Change, State, classify_change
from handrail.store.change_log import ChangeSetRecord, FileExtras, Step


class PlannedChangeSet(msgspec.Struct, frozen=True):
    """A change set that is about to be made."""

    tool: str
    summary: str
    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    diffs: tuple[str, ...]
    """One a step."""
    undoes: tuple[int, ...] = ()
    not_covered: tuple[str, ...] = ()
    """What of it undo will not cover, in words."""
    unlinked_paths: tuple[bytes, ...] = ()
    """Paths that become another name of a file."""
    was: tuple[FileExtras, ...] = ()
    """What files are now besides their states."""
    opened: tuple[tuple[bytes, int], ...] = ()
    """Folders that are opened for it, with their modes."""

    def body(self) -> ChangeSetRecord:
        """As the change log has it."""
        return ChangeSetRecord(
            self.tool,
            self.summary,
            self.steps,
            self.changes,
            self.undoes,
            not_covered=self.not_covered,
            unlinked_paths=self.unlinked_paths,
            was=self.was,
            opened=self.opened,
        )


class DiffBudget:
    """How much is compared for the diffs of one change set: there may be thousands of files, and nobody reads that."""

    def __init__(self, files: int = 200, size: int = 4 * 1024 * 1024) -> None:
        self._files = files
        self._size = size

    def allows(self, step: Step) -> bool:
        """Whether a file is still compared; if so it is counted."""
        if step.kind == "folder" or self._files <= 0 or self._size <= 0:
            return False
        self._files -= 1
        self._size -= sum(state.size for state in (step.before, step.after) if state is not None)
        return True


def build_change(step: Step, shown: str, diff: Diff, *, binary: bool = False) -> Change:
    """A step as people and models see it."""
    before, after = step.before, step.after
    return Change(
        path=shown,
        action=classify_change(before, after),
        kind=step.kind,
        before=before.hash or None if before else None,
        after=after.hash or None if after else None,
        size=after.size if after and after.kind != "folder" else None,
        mode=after.mode if after else None,
        added=diff.added if step.kind != "folder" else None,
        removed=diff.removed if step.kind != "folder" else None,
        binary=binary,
        replaces=before.kind if before and after and before.kind != after.kind else None,
        executable=_is_runnable(after) and not _is_runnable(before),
        read_only=bool(before and after and before.kind == "file" and not (before.mode or 0) & 0o222),
    )


def _is_runnable(state: State | None) -> bool:
    return state is not None and state.kind == "file" and bool((state.mode or 0) & 0o111)
