"""The tool undo. It is for people: no session offers it to a model."""

from handrail.changes.recorder import Recorder
from handrail.changes.undo import describe_undo, execute_undo, plan_undo
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.tool import Context, Output, Tool, Touches
from handrail.workspace.workspace import Workspace


class UndoArguments(Arguments, frozen=True):
    """The arguments of undo."""

    numbers: tuple[int, ...]
    """The change sets to undo, all of them or none."""
    lines: bool = False
    """Where a file was changed since, undo only the lines that are as they were left."""


class UndoData(Wire, frozen=True, omit_defaults=False):
    """What was undone."""

    number: int | None
    """The change set that the undo is itself; None when nothing had to change."""
    undone: tuple[int, ...]
    paths: tuple[str, ...]
    diff: str


UNDO = ToolSpec(
    name="undo",
    title="Undo",
    description="Take back what earlier calls changed.",
    arguments=UndoArguments,
    data=UndoData,
    permissions=("fs.write", "fs.delete"),
    side_effects=("files",),
    plain_arguments=("numbers", "lines"),
)


def build_undo_tool(workspace: Workspace, recorder: Recorder) -> Tool:
    def run(context: Context, arguments: UndoArguments) -> Output:
        plan = plan_undo(workspace, recorder.history, arguments.numbers, lines=arguments.lines)
        ids = {"session_id": context.session_id, "call_id": context.tool_call_id}
        made, diff = execute_undo(workspace, recorder, plan, **ids)
        changes = made.changes.changes
        left = f"{plan.left} of its places changed since and stay." if plan.left else None
        paths = tuple(change.path for change in changes)
        return Output(
            summary=plan.summary,
            content=f"{plan.summary}.\n{diff}",
            data=UndoData(number=made.changes.number, undone=plan.numbers, paths=paths, diff=diff),
            files_changed=tuple(change.path for change in changes if change.kind != "folder"),
            warnings=tuple(filter(None, (left, made.problem))),
            changes=made.changes,
        )

    def touches(arguments: UndoArguments) -> Touches:
        entries = [recorder.history.log.entry(number) for number in arguments.numbers]
        paths = {step.path for entry in entries if entry is not None for step in entry.body.steps}
        return Touches(writes=tuple(workspace.render_path(path) for path in sorted(paths)))

    return Tool(UNDO, run, touches)


def preview_undo(workspace: Workspace, recorder: Recorder, arguments: UndoArguments) -> str:
    plan = plan_undo(workspace, recorder.history, arguments.numbers, lines=arguments.lines)
    return "".join(describe_undo(workspace, recorder, plan)[1])
