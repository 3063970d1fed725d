"""The tool delete."""

from typing import Annotated, Literal

from msgspec import Meta

from handrail.changes.apply import MAX_IN_MEMORY_BYTES
from handrail.edit.diff import Diff, build_unified_diff
from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import FileChange, commit_files
from handrail.tools.file_state import ExistingTarget, Records, TargetPath, TargetResolver
from handrail.tools.tool import Context, Output, ReadMarks, Tool, Touches
from handrail.workspace.errors import clip_path
from handrail.workspace.text import decode_text

# § [tools.delete] delete: a file or a link goes, and undo brings it back.


class DeleteArguments(Arguments, frozen=True):
    """The arguments of delete."""

    path: Annotated[str, Meta(description="File to delete, relative to the workspace. A link goes, not its target.")]


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
    description="Delete a file, or a link and not what it leads to. Folders are not deleted.",
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


def build_delete_tool(seen: ReadMarks, records: "Records") -> Tool:
    """The tool delete for one session. What it is done with is loaded when it is first used."""

    def run(context: Context, arguments: DeleteArguments) -> Output:

        return delete(context, arguments, seen, records)

    def preview(context: Context, arguments: DeleteArguments) -> Preview:

        return preview_delete(context, arguments, seen, records)

    return Tool(DELETE, run, lambda arguments: Touches(deletes=(arguments.path,)), preview)


# § [tools.deleting] What delete does: looks at the file, keeps it for undo, removes it.

NO_DIFF = Diff("", 0, 0)


def delete(context: Context, arguments: DeleteArguments, seen: ReadMarks, records: Records) -> Output:
    """Deletes the file."""
    slot = _look(context, arguments, seen, records)
    gone = build_removal(slot)
    made = commit_files(records, context, "delete", f"delete {slot.real}", [gone])
    lines = f" −{gone.diff.removed}" if gone.diff.removed else ""
    summary = f"Deleted {_noun(slot)}{clip_path(arguments.path)}{lines}"
    return Output(
        summary=summary,
        content=f"{summary}.\n",
        data=DeleteData(
            path=slot.real,
            kind="link" if slot.is_link else "file",
            size=slot.state.size,
            before=slot.state.hash,
            diff=gone.diff.text,
        ),
        meta={"unread": slot.unread},
        files_changed=(slot.real,),
        warnings=(f"It was deleted, but: {made.problem}",) if made.problem else (),
        changes=made.changes,
    )


def preview_delete(context: Context, arguments: DeleteArguments, seen: ReadMarks, records: Records) -> Preview:
    """What would go."""
    slot = _look(context, arguments, seen, records)
    diff = build_removal(slot).diff
    return Preview(kind="diff", text=diff.text or f"({_noun(slot)}{slot.real} goes)\n", truncated=diff.truncated)


def build_removal(slot: TargetPath) -> FileChange:
    """A path that goes, with the difference that makes where it is text."""
    now = slot.found.current
    if now is None:
        return FileChange(slot, None, None, NO_DIFF)
    text = decode_text(now.data) if now.data is not None and len(now.data) <= MAX_IN_MEMORY_BYTES else None
    diff = build_unified_diff(text.text, None, slot.real) if text is not None else NO_DIFF
    return FileChange(slot, None, None, diff, binary=text is None)


def _look(context: Context, arguments: DeleteArguments, seen: ReadMarks, records: Records) -> ExistingTarget:
    return TargetResolver(context, seen, records, "deleting").to_remove(arguments.path)


def _noun(slot: TargetPath) -> str:
    return "the link " if slot.is_link else ""
