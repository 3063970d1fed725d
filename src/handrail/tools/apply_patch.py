"""apply_patch: several changes of several files, all of them or none."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from handrail.protocol.changes import Action
from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import Context, Output, ReadMarks, Tool, Touches

if TYPE_CHECKING:
    from handrail.tools.records import Records

MAX_PATCH_CHARS = 32 * 1024 * 1024
"""Characters that a patch may have."""


class ApplyPatchArguments(Arguments, frozen=True):
    """The arguments of apply_patch."""

    patch: Annotated[
        str,
        Meta(
            max_length=MAX_PATCH_CHARS,
            description=(
                "The patch: '*** Begin Patch' … '*** End Patch' with '*** Add File:', '*** Update File:' (and "
                "'*** Move to:'), '*** Delete File:' and hunks of ' ', '-' and '+' lines behind '@@' lines; or a "
                "unified or git diff. Paths are relative to the workspace."
            ),
        ),
    ]


class PatchedFile(Wire, frozen=True, omit_defaults=False):
    """What became of one file."""

    path: str
    action: Action
    renamed_from: str | None
    before: str | None
    """Hash of its bytes before; null where there was no file."""
    hash: str | None
    """Hash of its bytes now; null where there is no file."""
    added: int
    removed: int
    strategies: tuple[str, ...]
    """How the place of each hunk was found: `exact`, or more tolerant."""


class ApplyPatchData(Wire, frozen=True, omit_defaults=False):
    """What was changed."""

    files: tuple[PatchedFile, ...]
    diff: str


APPLY_PATCH = ToolSpec(
    name="apply_patch",
    title="Apply patch",
    description=(
        "Change several files in one step: all of it is done, or nothing. Takes the '*** Begin Patch' form or a "
        "unified diff. Every hunk needs enough lines around it to be found once, or an '@@' line that names its "
        "function or class. Refused when a file changed since this session read it."
    ),
    arguments=ApplyPatchArguments,
    data=ApplyPatchData,
    permissions=("fs.read", "fs.write", "fs.delete"),  # what it refuses it explains, with lines of the file
    side_effects=("files",),
    enabled=False,
    stage="change",
    intent="change several files in one step, all or nothing",
    not_for=(("one change in one file", "edit"),),
)


def build_apply_patch_tool(seen: ReadMarks, records: "Records") -> Tool:
    """The tool apply_patch for one session. What it is done with is loaded when it is first used."""

    def run(context: Context, arguments: ApplyPatchArguments) -> Output:
        from handrail.tools.patching import apply_patch  # noqa: PLC0415  as said

        return apply_patch(context, arguments, seen, records)

    def preview(context: Context, arguments: ApplyPatchArguments) -> Preview:
        from handrail.tools.patching import preview_patch  # noqa: PLC0415  as said

        return preview_patch(context, arguments, seen, records)

    def touches(arguments: ApplyPatchArguments) -> Touches:
        from handrail.tools.patching import declare_touches  # noqa: PLC0415  as said

        return declare_touches(arguments)

    return Tool(APPLY_PATCH, run, touches, preview)
