"""write: a whole file, new or in the place of the old one."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import Context, Output, ReadMarks, Tool, Touches

if TYPE_CHECKING:
    from handrail.tools.records import Records

MAX_CONTENT_CHARS = 32 * 1024 * 1024
"""Characters that one write may carry: several copies of them are in memory and in the journal."""


class WriteArguments(Arguments, frozen=True):
    """The arguments of write."""

    path: Annotated[str, Meta(description="File to write, relative to the workspace. Parents are created.")]
    content: Annotated[str, Meta(max_length=MAX_CONTENT_CHARS, description="The whole new content.")]


class WriteData(Wire, frozen=True, omit_defaults=False):
    """What was written."""

    path: str
    created: bool
    size: int
    hash: str
    before: str | None
    encoding: str
    line_ending: str
    diff: str


WRITE = ToolSpec(
    name="write",
    title="Write",
    description=(
        "Write a whole file: creates it with its parents, or replaces all of it in one step. "
        "Refused when the file changed since this session read it."
    ),
    arguments=WriteArguments,
    data=WriteData,
    permissions=("fs.write",),
    side_effects=("files",),
    idempotent=True,
    plain_arguments=("path",),
    layer="base",
    stage="change",
    intent="create a file, or replace all of it",
    not_for=(("a change to part of a file", "edit"),),
)


def build_write_tool(seen: ReadMarks, records: "Records") -> Tool:
    """The tool write for one session. What it is done with is loaded when it is first used: many sessions only look."""

    def run(context: Context, arguments: WriteArguments) -> Output:
        from handrail.tools.writing import write  # noqa: PLC0415  as said

        return write(context, arguments, seen, records)

    def preview(context: Context, arguments: WriteArguments) -> Preview:
        from handrail.tools.writing import preview_write  # noqa: PLC0415  as said

        return preview_write(context, arguments, seen, records)

    return Tool(WRITE, run, lambda arguments: Touches(writes=(arguments.path,)), preview)
