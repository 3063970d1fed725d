"""Takes back at once what a command changed on the files themselves, where policy does not let it be."""

import os

from handrail.changes.planned import Planned, change_of
from handrail.changes.recorder import Recorder
from handrail.changes.undoing import look_at
from handrail.changes.ways import back
from handrail.edit.diff import Diff
from handrail.protocol.change import ChangeSet
from handrail.store.change_log import Step
from handrail.workspace.exact import reach, shown_path
from handrail.workspace.temporary import temporary_name
from handrail.workspace.workspace import Workspace

_NO_DIFF = Diff("", 0, 0)


def take_back(
    workspace: Workspace, recorder: Recorder, made: ChangeSet, steps: tuple[Step, ...], *, session_id: str, call_id: str
) -> None:
    """Brings every file back to what it was, on the record like any undo; ToolError where that cannot be, and then
    nothing is taken back. What the files had become is kept."""
    number = made.number or 0
    for step in steps:
        _keep_after(workspace, recorder, step)
    ways = tuple(map(back, steps))
    changes = tuple(change_of(step, shown_path(workspace, step.path), _NO_DIFF) for step in ways)
    planned = Planned("undo", f"Took back {number}: nobody said yes to it", ways, changes, ("",) * len(ways), (number,))
    own = f"{call_id}-back"

    def work() -> tuple[Step, ...]:
        recorder.carry_out(temporary_name(session_id, own), ways)
        return ways

    recorder.record(own, planned, work)


def _keep_after(workspace: Workspace, recorder: Recorder, step: Step) -> None:
    if step.after is None or step.after.kind == "folder":
        return
    with reach(workspace, step.path) as landing:
        if step.after.kind == "link":
            recorder.keep_link(landing)
            return
        found = look_at(workspace, step.path)
        if found.current is not None:
            recorder.keep(found.current, landing)


def config_texts(workspace: Workspace, steps: tuple[Step, ...]) -> dict[str, str]:
    """The text of each new `.git/config`, by its path as results name it."""
    found: dict[str, str] = {}
    for step in steps:
        name = os.fsdecode(step.path)
        if step.before is None and step.after is not None and f"/{name}".endswith("/.git/config"):
            current = look_at(workspace, step.path, keep=65_536).current
            if current is not None and current.data is not None:
                found[shown_path(workspace, step.path)] = current.data.decode("utf-8", "replace")
    return found
