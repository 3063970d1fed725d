"""Keeps what a command changed in its layer: all of it or nothing, and so that it can be taken back."""

import os

from handrail.changes.layered.sealing import store_after
from handrail.changes.layered.trial import Examined
from handrail.changes.looking import look_at
from handrail.changes.planned import Planned
from handrail.changes.recorder import Recorded, Recorder
from handrail.changes.ways import agrees
from handrail.protocol.error import ToolError
from handrail.sandbox.layer.layer import Layer
from handrail.store.change_log import Step
from handrail.workspace.errors import clipped
from handrail.workspace.exact import reach
from handrail.workspace.temporary import temporary_name
from handrail.workspace.workspace import Workspace


def stale(workspace: Workspace, examined: Examined) -> tuple[str, ...]:
    """The paths that others changed since the command was tried, as results name them."""
    return tuple(
        os.fsdecode(step.path) for step in examined.steps if not agrees(look_at(workspace, step.path).state, step)
    )


def commit(
    workspace: Workspace,
    recorder: Recorder,
    examined: Examined,
    layer: Layer | None,
    *,
    session_id: str,
    call_id: str,
    summary: str,
) -> Recorded:
    """Makes the changes; ToolError CONFLICT where others changed one of the files since, and then nothing is changed.

    `layer`: where the new contents are; None where they were sealed.
    """
    outdated = stale(workspace, examined)
    if outdated:
        raise ToolError(
            "CONFLICT", f"The preview was out of date: {clipped(outdated[0])} changed. Nothing was kept. Call again."
        )
    for step in examined.steps:
        if layer is not None:
            store_after(workspace, recorder.history, step, layer)
        _keep_before(workspace, recorder, step)
    planned = Planned("exec", summary, examined.steps, examined.changes, examined.diffs)

    def work() -> tuple[Step, ...]:
        recorder.carry_out(temporary_name(session_id, call_id), planned.steps)
        return planned.steps

    return recorder.record(call_id, planned, work)


def _keep_before(workspace: Workspace, recorder: Recorder, step: Step) -> None:
    if step.before is None or step.before.kind == "folder":
        return
    with reach(workspace, step.path) as landing:
        if step.before.kind == "link":
            recorder.keep_link(landing)
        else:
            found = look_at(workspace, step.path)
            if found.current is not None:
                recorder.keep(found.current, landing)
