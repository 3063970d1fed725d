"""multi_edit: several edits of one file, each of what the one before made, all of them or none."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import MAX_TEXT_BYTES, Context, Output, ReadMarks, Tool, Touches

if TYPE_CHECKING:
    from handrail.tools.records import Records

MAX_EDITS = 1_000
"""Edits in one call: each looks through the file."""
Occurrence = Literal["unique", "first", "all"]


class OneEdit(Wire, frozen=True):
    """One of the edits."""

    old_text: Annotated[
        str, Meta(max_length=MAX_TEXT_BYTES, description="Text to replace, as the edits before it left it.")
    ]
    new_text: Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="Text to put in its place.")]
    occurrence: Annotated[
        Occurrence, Meta(description="Which place: the only one (unique), the first, or all of them.")
    ] = "unique"


class MultiEditArguments(Arguments, frozen=True):
    """The arguments of multi_edit."""

    path: Annotated[str, Meta(description="File to edit, relative to the workspace.")]
    edits: Annotated[
        tuple[OneEdit, ...],
        Meta(min_length=1, max_length=MAX_EDITS, description="The edits, in the order they are made."),
    ]


class Edited(Wire, frozen=True, omit_defaults=False):
    """What one of the edits did."""

    strategy: str
    replacements: int
    """Places."""
    first_line: int
    """The first line that is another one now, of the text as the edits before it left it."""


class MultiEditData(Wire, frozen=True, omit_defaults=False):
    """What was changed."""

    path: str
    size: int
    hash: str
    before: str
    encoding: str
    line_ending: str
    edits: tuple[Edited, ...]
    diff: str


MULTI_EDIT = ToolSpec(
    name="multi_edit",
    title="Edit several",
    description=(
        "Make several edits of one file in one step: in order, each in the text that the one before it left, and all "
        "of them or none. Refused when the file changed since this session read it."
    ),
    arguments=MultiEditArguments,
    data=MultiEditData,
    permissions=("fs.read", "fs.write"),  # what it refuses it explains, with lines of the file
    side_effects=("files",),
    enabled=False,
    plain_arguments=("path",),
    stage="change",
    intent="make several changes to one file in one step, all or nothing",
    not_for=(("a single change", "edit"),),
)


def build_multi_edit_tool(seen: ReadMarks, records: "Records") -> Tool:
    """The tool multi_edit for one session. What it is done with is loaded when it is first used."""

    def run(context: Context, arguments: MultiEditArguments) -> Output:
        from handrail.tools.multi_editing import multi_edit  # noqa: PLC0415  as said

        return multi_edit(context, arguments, seen, records)

    def preview(context: Context, arguments: MultiEditArguments) -> Preview:
        from handrail.tools.multi_editing import preview_multi_edit  # noqa: PLC0415  as said

        return preview_multi_edit(context, arguments, seen, records)

    return Tool(MULTI_EDIT, run, lambda arguments: Touches(writes=(arguments.path,)), preview)
