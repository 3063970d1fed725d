"""Changes several paths as one: all of them or none, one change set, one undo."""

import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from handrail.changes.planned import PlannedChangeSet, build_change
from handrail.changes.recorder import RecordedChangeSet
from handrail.edit.diff import Diff
from handrail.protocol.changes import Change, State
from handrail.protocol.errors import ToolError
from handrail.store.change_log import Step
from handrail.tools.contract import Context
from handrail.tools.records import Records
from handrail.tools.slots import TargetPath
from handrail.workspace.atomic import build_temporary_name
from handrail.workspace.file_state import Content
from handrail.workspace.workspace import Workspace


class FileChange(msgspec.Struct, frozen=True):
    """What a path is to be."""

    slot: TargetPath
    data: bytes | None
    """None: it goes."""
    mode: int | None
    """Permission bits; None for those that a new file has."""
    diff: Diff
    renamed_from: str | None = None
    binary: bool = False

    @property
    def after(self) -> State | None:
        """The state of it then."""
        if self.data is None:
            return None
        new = Content.from_bytes(self.data)
        return State(kind="file", hash=new.hash, size=new.size, mode=self.mode)


class _Row(NamedTuple):
    step: Step
    change: Change
    diff: str


def commit_files(
    records: Records, context: Context, tool: str, summary: str, all_of_them: Sequence[FileChange]
) -> RecordedChangeSet:
    """Makes the changes; ToolError, and everything as it was, when one cannot be made."""
    context.check_cancelled()
    rows = [*_folders(all_of_them), *(_row(each) for each in all_of_them)]
    for each, row in zip(all_of_them, rows[-len(all_of_them) :], strict=True):
        _keep(records, context.workspace, each, row.step)
    steps = tuple(row.step for row in rows)
    temporary = build_temporary_name(context.session_id, context.tool_call_id)

    def work() -> tuple[Step, ...]:
        taken = {step.path for step in _carried_out(records, temporary, steps)}
        return tuple(_as_taken(context.workspace, step) if step.path in taken else _stayed(step) for step in steps)

    changes, diffs = tuple(row.change for row in rows), tuple(row.diff for row in rows)
    return records.record(context.tool_call_id, PlannedChangeSet(tool, summary, steps, changes, diffs), work)


def _carried_out(records: Records, temporary: str, steps: tuple[Step, ...]) -> list[Step]:
    try:
        return records.carry_out(temporary, steps)
    except ToolError as error:
        if len(steps) == 1 or "stuck" in error.named_details:
            raise
        raise ToolError(error.code, f"{error.message} No file was changed.", details=error.details) from error


def _row(each: FileChange) -> _Row:
    step = Step(each.slot.exact, each.slot.found.state, each.after)
    change = build_change(step, each.slot.real, each.diff, binary=each.binary)
    if each.renamed_from is not None:
        change = msgspec.structs.replace(change, action="renamed", renamed_from=each.renamed_from)
    return _Row(step, change, each.diff.text)


def _folders(all_of_them: Sequence[FileChange]) -> Iterator[_Row]:
    """The folders that are made on the way, outer ones first."""
    made: set[bytes] = set()
    for each in all_of_them:
        levels = len(each.slot.missing) if each.data is not None else 0
        for number in range(levels):
            exact = each.slot.exact.rsplit(b"/", levels - number)[0]
            if exact not in made:
                made.add(exact)
                step = Step(exact, None, State(kind="folder"))
                shown = each.slot.real.rsplit("/", levels - number)[0]
                yield _Row(step, build_change(step, shown, Diff("", 0, 0)), "")


def _keep(records: Records, workspace: Workspace, each: FileChange, step: Step) -> None:
    """Keeps what is replaced, to go back to it, and what replaces it, which is then written from there."""
    found = each.slot.found
    if found.current is not None or found.state is not None:
        with workspace.open_parent(step.path) as landing:
            if found.current is not None:
                records.keep(found.current, landing)
            else:
                records.keep_link(landing)
    if each.data is not None and step.after is not None:
        records.keep_bytes(step.after.hash, each.data)


def _as_taken(workspace: Workspace, step: Step) -> Step:
    """A step with the permissions that a new file got."""
    if step.before is not None or step.after is None or step.after.mode is not None:
        return step
    with workspace.open_parent(step.path) as landing:
        status = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False)
    return Step(step.path, None, msgspec.structs.replace(step.after, mode=stat.S_IMODE(status.st_mode)))


def _stayed(step: Step) -> Step:
    """A folder that was there already by then."""
    return Step(step.path, step.before, step.before)
