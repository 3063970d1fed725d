"""The tool delete."""

from functools import partial
from typing import Annotated, Literal

from msgspec import Meta

from handrail.changes.recorder import Recorder
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import CommitResult, FileChange, FilePlan, build_removal
from handrail.tools.file_tool import FileView, build_file_tool
from handrail.tools.tool import Output, ReadMarks, Tool, Touches
from handrail.workspace.roots import clip_path


class DeleteArguments(Arguments, frozen=True):
    """The arguments of delete."""

    path: Annotated[str, Meta(description="File to delete, relative to the workspace. Deletes a link, not its target.")]


class DeleteData(Wire, frozen=True, omit_defaults=False):
    """What was deleted."""

    path: str
    kind: Literal["file", "link"]
    size: int
    before: str
    """Hash of the bytes, or of where the link led."""
    diff: str


DELETE = ToolSpec(
    name="delete",
    title="Delete",
    description="Delete a file, or a link but not its target. Cannot delete folders.",
    arguments=DeleteArguments,
    data=DeleteData,
    permissions=("fs.delete",),
    side_effects=("files",),
    idempotent=True,  # the second finds nothing
    enabled=False,
    plain_arguments=("path",),
    stage="change",
    intent="delete a file",
)


def build_delete_tool(seen: ReadMarks, records: Recorder) -> Tool:
    def declare(arguments: DeleteArguments) -> Touches:
        return Touches(deletes=(arguments.path,))

    return build_file_tool(DELETE, _plan, seen, records, doing="deleting", touches=declare)


def _plan(view: FileView, arguments: DeleteArguments) -> FilePlan:
    target = view.look_to_remove(arguments.path)
    removal = build_removal(target)
    noun = "the link " if target.is_link else ""
    return FilePlan(
        subject=target.real,
        changes=(removal,),
        preview=removal.diff.text or f"({noun}{target.real} goes)\n",
        is_truncated=removal.diff.truncated,
        done="deleted",
        describe=partial(_describe, removal, noun),
    )


def _describe(removal: FileChange, noun: str, _: CommitResult) -> Output:
    target, state, diff = removal.target, removal.target.state, removal.diff
    lines = f" −{diff.removed}" if diff.removed else ""
    summary = f"Deleted {noun}{clip_path(target.path)}{lines}"
    return Output(
        summary=summary,
        content=f"{summary}.\n",
        data=DeleteData(
            path=target.real,
            kind="link" if target.is_link else "file",
            size=state.size if state else 0,
            before=state.hash if state else "",
            diff=diff.text,
        ),
    )
