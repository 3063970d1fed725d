"""ls: what is in a folder."""

from typing import Annotated

from msgspec import Meta

from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import Context, Output, Tool, Touches


class LsArguments(Arguments, frozen=True):
    """The arguments of ls."""

    path: Annotated[str, Meta(description="Folder to list, relative to the workspace; . is the workspace.")]
    depth: Annotated[int, Meta(ge=1, le=20, description="How many levels to show.", extra={"unit": "levels"})] = 1


class LsEntry(Wire, frozen=True):
    """One name."""

    path: str
    kind: str
    size: int | None = None
    note: str | None = None


class LsData(Wire, frozen=True, omit_defaults=False):
    """The listing."""

    path: str
    entries: tuple[LsEntry, ...]


LS = ToolSpec(
    name="ls",
    title="List",
    description=(
        "List a folder, directories first, with sizes. With depth, also what is below; "
        "ignored folders (.git, node_modules, build output, .gitignore) are named but not entered."
    ),
    arguments=LsArguments,
    data=LsData,
    permissions=("fs.read",),
    auto_execute=True,
    plain_arguments=("path",),
    layer="base",
    stage="look",
    intent="see what is in a folder",
)


def build_ls_tool(ignore: tuple[str, ...] = ()) -> Tool:
    """The tool ls; `ignore` adds patterns to the built-in list. What it is done with is loaded on first use."""

    def run(context: Context, arguments: LsArguments) -> Output:
        from handrail.tools.listing import list_folder  # noqa: PLC0415  as said

        return list_folder(context, arguments, ignore)

    return Tool(LS, run, lambda arguments: Touches(reads=(arguments.path,)))
