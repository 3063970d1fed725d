"""grep: lines by what is in them."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import Context, Output, Outputs, Tool, Touches
from handrail.tools.preview import OUTPUT

if TYPE_CHECKING:
    from handrail.tools.searching import SessionSearch


class GrepArguments(Arguments, frozen=True):
    """The arguments of grep."""

    pattern: Annotated[
        str,
        Meta(min_length=1, max_length=10_000, description="Regular expression (ripgrep's); lines are searched."),
    ]
    path: Annotated[
        str, Meta(description="Folder or file to search, relative to the workspace, or an @output/… reference.")
    ] = "."
    file_pattern: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1_000)] | None,
        Meta(description="Glob of the files to search, e.g. *.py."),
    ] = None
    case_sensitive: Annotated[bool, Meta(description="Whether upper and lower case differ.")] = True
    context_lines: Annotated[int, Meta(ge=0, le=20, description="Lines to show before and after each match.")] = 0
    max_results: Annotated[
        int, Meta(ge=1, le=10_000, description="Most matching lines to return, in all.", extra={"unit": "lines"})
    ] = 100


class GrepMatch(Wire, frozen=True):
    """One line that matched, and its neighbours."""

    path: str
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class GrepData(Wire, frozen=True, omit_defaults=False):
    """The matches, in the order of their files and lines."""

    path: str
    matches: tuple[GrepMatch, ...]


GREP = ToolSpec(
    name="grep",
    title="Grep",
    description=(
        "Search the lines of files with a regular expression. Results are grouped by file, in sorted order; `12:` is "
        "a match, `12-` a line of context. Dotfiles are searched; ignored and binary files are not."
    ),
    arguments=GrepArguments,
    data=GrepData,
    permissions=("fs.read",),
    auto_execute=True,
    plain_arguments=("path",),
    layer="base",
    stage="look",
    intent="search for text inside files",
)


def build_grep_tool(searching: "SessionSearch", outputs: Outputs) -> Tool:
    """The tool grep."""

    def run(context: Context, arguments: GrepArguments) -> Output:
        from handrail.tools.grepping import grep  # noqa: PLC0415  what searching takes, only who searches loads

        return grep(searching, outputs, context, arguments)

    return Tool(GREP, run, _touches)


def _touches(arguments: GrepArguments) -> Touches:
    return Touches() if arguments.path.startswith(OUTPUT) else Touches(reads=(arguments.path,))
