"""edit: one text of a file in the place of another, and not a byte besides."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import MAX_TEXT_BYTES, Context, Output, ReadMarks, Tool, Touches

if TYPE_CHECKING:
    from handrail.tools.records import Records


class EditArguments(Arguments, frozen=True):
    """The arguments of edit."""

    path: Annotated[str, Meta(description="File to edit, relative to the workspace.")]
    old_text: Annotated[
        str,
        Meta(max_length=MAX_TEXT_BYTES, description="Text to replace, as read shows it; it must be in the file once."),
    ]
    new_text: Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="Text to put in its place.")]
    replace_all: Annotated[bool, Meta(description="Replace it wherever it is.")] = False


class EditData(Wire, frozen=True, omit_defaults=False):
    """What was changed."""

    path: str
    size: int
    hash: str
    before: str
    encoding: str
    line_ending: str
    replacements: int
    first_line: int
    diff: str


EDIT = ToolSpec(
    name="edit",
    title="Edit",
    description=(
        "Replace a text in a file by another: exactly that text and nothing around it. It must be in the file once, "
        "unless replaceAll is set. Refused when the file changed since this session read it."
    ),
    arguments=EditArguments,
    data=EditData,
    permissions=("fs.read", "fs.write"),  # what it refuses it explains, with lines of the file
    side_effects=("files",),
    plain_arguments=("path",),
    layer="base",
    stage="change",
    intent="replace an exact text in a file",
    not_for=(("a new file", "write"),),
)


def build_edit_tool(seen: ReadMarks, records: "Records") -> Tool:
    """The tool edit for one session. What it is done with is loaded when it is first used: many sessions only look."""

    def run(context: Context, arguments: EditArguments) -> Output:
        from handrail.tools.editing import edit  # noqa: PLC0415  as said

        return edit(context, arguments, seen, records)

    def preview(context: Context, arguments: EditArguments) -> Preview:
        from handrail.tools.editing import preview_edit  # noqa: PLC0415  as said

        return preview_edit(context, arguments, seen, records)

    return Tool(EDIT, run, lambda arguments: Touches(writes=(arguments.path,)), preview)
