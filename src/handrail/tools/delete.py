"""delete: a file or a link goes, and undo brings it back."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import Context, Output, ReadMarks, Tool, Touches

if TYPE_CHECKING:
    from handrail.tools.records import Records


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
        from handrail.tools.deleting import delete  # noqa: PLC0415  as said

        return delete(context, arguments, seen, records)

    def preview(context: Context, arguments: DeleteArguments) -> Preview:
        from handrail.tools.deleting import preview_delete  # noqa: PLC0415  as said

        return preview_delete(context, arguments, seen, records)

    return Tool(DELETE, run, lambda arguments: Touches(deletes=(arguments.path,)), preview)
