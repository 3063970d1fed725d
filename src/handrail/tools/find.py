"""find: files by their names."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import Context, Output, Tool, Touches

if TYPE_CHECKING:
    from handrail.tools.searching import SessionSearch

Globs = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=1_000)], ...], Meta(max_length=100)]


class FindArguments(Arguments, frozen=True):
    """The arguments of find."""

    pattern: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1_000,
            description="Glob, e.g. *.py or src/**/test_*.ts; without a slash it matches the name at any depth.",
        ),
    ]
    path: Annotated[str, Meta(description="Folder to search, relative to the workspace; also an ignored one.")] = "."
    max_results: Annotated[int, Meta(ge=1, le=10_000, description="Most files to return.", extra={"unit": "files"})] = (
        1_000
    )
    exclude: Annotated[Globs, Meta(description="Globs of files and folders to leave out.")] = ()


class FindData(Wire, frozen=True, omit_defaults=False):
    """The files, in the order of their paths."""

    path: str
    files: tuple[str, ...]


FIND = ToolSpec(
    name="find",
    title="Find",
    description=(
        "Find files by name with a glob, in sorted order. Dotfiles are included; ignored files (.gitignore, .git, "
        "node_modules, build output) are not, unless path names their folder."
    ),
    arguments=FindArguments,
    data=FindData,
    permissions=("fs.read",),
    auto_execute=True,
    plain_arguments=("path", "pattern"),
    layer="base",
    stage="look",
    intent="locate files by name",
    not_for=(("what is inside files", "grep"),),
)


def build_find_tool(searching: "SessionSearch") -> Tool:
    """The tool find."""

    def run(context: Context, arguments: FindArguments) -> Output:
        from handrail.tools.finding import find  # noqa: PLC0415  what searching takes, only who searches loads

        return find(searching, context, arguments)

    return Tool(FIND, run, lambda arguments: Touches(reads=(arguments.path,)))
