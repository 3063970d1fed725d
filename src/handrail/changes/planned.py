"""A change set before it is made."""

import msgspec

from handrail.edit.diff import Diff
from handrail.protocol.change import Change, State, action_of
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


def change_of(step: Step, shown: str, diff: Diff, *, binary: bool = False) -> Change:
    """A step as people and models see it."""
    before, after = step.before, step.after
    return Change(
        path=shown,
        action=action_of(before, after),
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
    )


def _is_runnable(state: State | None) -> bool:
    return state is not None and state.kind == "file" and bool((state.mode or 0) & 0o111)
