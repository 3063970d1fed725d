"""Tools that change files by a plan.

A plan lists what every file becomes. The same plan is shown in a preview, committed as one change set, and laid below a
command that is tried after the call. Planning and committing take the engine rooms (`edit`, `changes`), which many
sessions do not need. So the modules of these tools import them in the functions that plan and run.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handrail.protocol.changes import Preview
from handrail.protocol.tool_spec import ToolSpec
from handrail.tools.file_state import FileView, SimulatedFiles, SimulatedView
from handrail.tools.tool import Context, Output, ReadMarks, Tool, Touches

if TYPE_CHECKING:
    from handrail.changes.model import OverlayChanges
    from handrail.changes.recorder import Recorder
    from handrail.tools.file_commit import FilePlan


class FileTool(Tool, frozen=True, kw_only=True):
    """A tool that changes files by a plan."""

    simulate: Callable[[Context, Any, SimulatedFiles], "OverlayChanges"]
    """What a call would change after other calls of its batch."""


def build_file_tool(
    spec: ToolSpec,
    make_plan: Callable[[FileView, Any], "FilePlan"],
    touches: Callable[[Any], Touches],
    marks: ReadMarks,
    recorder: "Recorder",
    *,
    doing: str,
) -> FileTool:
    """The tool whose calls are planned by `make_plan`. `doing` names the work in messages: writing, editing."""

    def run(context: Context, arguments: Any) -> Output:
        from handrail.tools.file_commit import run_plan  # noqa: PLC0415  see above

        with FileView(context, marks, recorder, doing) as view:
            return run_plan(context, marks, recorder, spec.name, make_plan(view, arguments))

    def preview(context: Context, arguments: Any) -> Preview:
        with FileView(context, marks, recorder, doing) as view:
            plan = make_plan(view, arguments)
        return Preview(kind="diff", text=plan.preview, truncated=plan.is_truncated)

    def simulate(context: Context, arguments: Any, files: SimulatedFiles) -> "OverlayChanges":
        from handrail.tools.file_commit import simulate_plan  # noqa: PLC0415  see above

        with SimulatedView(context, files, recorder, doing) as view:
            return simulate_plan(context, make_plan(view, arguments))

    return FileTool(spec=spec, run=run, touches=touches, preview=preview, simulate=simulate)
