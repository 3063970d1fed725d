"""The tool find."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from handrail.protocol.text import escape_unprintable, format_count
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.search import (
    SessionSearch,
    build_path_namer,
    build_search_meta,
    describe_omissions,
    describe_search_scope,
    render_hidden_count,
    render_no_results,
)
from handrail.tools.tool import Context, Output, Tool, Touches
from handrail.workspace.errors import to_tool_error
from handrail.workspace.search.engine import SearchScope
from handrail.workspace.workspace import OpenPath, Workspace

if TYPE_CHECKING:
    from handrail.workspace.search.search import Engines, SearchResult

Globs = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=1_000)], ...], Meta(max_length=100)]


class FindArguments(Arguments, frozen=True):
    """The arguments of find."""

    pattern: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1_000,
            description="Glob, e.g. *.py or src/**/test_*.ts; without a slash it matches names at any depth.",
        ),
    ]
    path: Annotated[str, Meta(description="Folder to search, relative to the workspace; also an ignored one.")] = "."
    max_results: Annotated[
        int, Meta(ge=1, le=10_000, description="Maximum files to return.", extra={"unit": "files"})
    ] = 1_000
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
    not_for=(("text inside files", "grep"),),
)


def build_find_tool(searching: SessionSearch) -> Tool:
    return Tool(FIND, partial(_find, searching), lambda arguments: Touches(reads=(arguments.path,)))


def list_files(searching: SessionSearch, workspace: Workspace, most: int) -> tuple[str, ...]:
    """The files that the tool would list, without a call."""
    from handrail.workspace.search.search import find_files  # noqa: PLC0415  engine room

    with workspace.open_folder(".") as opened:
        scope = _build_scope(searching, workspace, opened, FindArguments(pattern="*"))
        found = find_files(searching.engines(workspace), scope, most, lambda: False)
        return tuple(map(build_path_namer(opened), found.items[:most]))


def _build_scope(
    searching: SessionSearch, workspace: Workspace, opened: OpenPath, arguments: FindArguments
) -> SearchScope:
    return SearchScope(
        opened.descriptor,
        opened.root.descriptor,
        opened.relative,
        workspace.kernel,
        arguments.pattern,
        arguments.exclude,
        searching.ignore,
        protected=workspace.sensitive_paths.list_known(opened.root, opened.relative),
    )


def _find(searching: SessionSearch, context: Context, arguments: FindArguments) -> Output:
    from handrail.workspace.search.search import find_files  # noqa: PLC0415  engine room

    engines = searching.engines(context.workspace)
    with context.workspace.open_folder(arguments.path) as opened:
        scope = _build_scope(searching, context.workspace, opened, arguments)
        try:
            found = find_files(engines, scope, arguments.max_results, context.cancelled)
        except OSError as error:  # another program moved the folder
            raise to_tool_error(error, arguments.path) from None
        described = describe_search_scope(opened, arguments.pattern, searching.ignore, arguments.exclude)
        return _build_output(arguments, found, opened, engines, described)


def _build_output(
    arguments: FindArguments, found: "SearchResult[bytes]", opened: OpenPath, engines: "Engines", scope: str
) -> Output:
    name = build_path_namer(opened)
    shown = [name(path) for path in found.items[: arguments.max_results]]
    more = found.total > len(shown) or not found.exact
    content = "".join(f"{path}\n" for path in shown)
    return Output(
        summary=_summarize(len(shown), found, arguments.path),
        content=(content or render_no_results(found, "files", scope)) + render_hidden_count(found),
        data=FindData(path=opened.real, files=tuple(shown)),
        whole=_list_all(found, shown, name),
        truncated=more,
        meta=build_search_meta(found, engines, len(shown), len(shown)),
        warnings=describe_omissions(found, engines, len(shown), "files", "path, pattern or exclude"),
    )


def _list_all(found: "SearchResult[bytes]", shown: list[str], name: Callable[[bytes], str]) -> str | None:
    if not found.exact or found.total <= len(shown):
        return None
    return "".join(f"{path}\n" for path in (*shown, *map(name, found.items[len(shown) :])))


def _summarize(shown: int, found: "SearchResult[bytes]", path: str) -> str:
    place = "" if path == "." else f" in {escape_unprintable(path)[:200]}"
    if not shown:
        return f"No files{'' if found.exact else ' so far'}{place}"
    if shown < found.total or not found.exact:
        least = "" if found.exact else "at least "
        return f"{shown:,} of {least}{format_count(found.total, 'file')}{place}"
    return f"{format_count(shown, 'file')}{place}"
