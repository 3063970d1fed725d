"""The tool search_text, for dialects: grep that also counts, names files, matches over line ends."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from handrail.protocol.errors import ToolError
from handrail.protocol.text import format_count
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.grep import (
    GREP,
    GrepArguments,
    GrepMatch,
    PathNamer,
    declare_touches,
    grep,
    limit_hits,
    list_matches,
    render_line,
)
from handrail.tools.search import SessionSearch, build_search_meta
from handrail.tools.tool import Output, Outputs, Tool
from handrail.workspace.search.engine import MAX_HITS, FileHits

if TYPE_CHECKING:
    from handrail.workspace.search.search import Engines, SearchResult

_MAX_FILES = 10_000


class SearchTextArguments(GrepArguments, frozen=True):
    """The arguments of grep, with those that only other systems have."""

    multiline: bool = False
    """Whether a match may reach over line ends. `.` matches a line end then."""
    mode: Literal["content", "files", "count"] = "content"
    max_results: Annotated[int, Meta(ge=1, le=MAX_HITS)] = 100
    matched_only: bool = False
    """Whether to return the matched parts of lines."""

    @property
    def wants_parts(self) -> bool:
        return self.matched_only and self.mode == "content"


class FileCount(Wire, frozen=True, omit_defaults=False):
    """How many lines of a file match."""

    path: str
    matches: int


class SearchTextData(Wire, frozen=True, omit_defaults=False):
    """The matching lines, or the files that have any."""

    path: str
    matches: tuple[GrepMatch, ...]
    files: tuple[FileCount, ...]
    matched: tuple[GrepMatch, ...]
    """The matched parts, if only those are wanted."""


SEARCH_TEXT = ToolSpec(
    name="search_text",
    title=GREP.title,
    description=GREP.description,
    arguments=SearchTextArguments,
    data=SearchTextData,
    permissions=GREP.permissions,
    auto_execute=True,
    plain_arguments=("path",),
    layer="base",
    stage="look",
    intent=GREP.intent,
)


def build_search_text_tool(searching: SessionSearch, outputs: Outputs) -> Tool:
    return Tool(SEARCH_TEXT, partial(_run, searching, outputs), declare_touches)


def _run(searching: SessionSearch, outputs: Outputs, context: object, arguments: SearchTextArguments) -> Output:
    if arguments.multiline and arguments.wants_parts:
        message = "matched parts across line ends are not supported; ask for whole lines, or search within one line."
        raise ToolError("UNAVAILABLE", message)
    return grep(searching, outputs, _build_output, context, arguments)  # pyright: ignore[reportArgumentType]


def _build_output(
    arguments: SearchTextArguments,
    found: "SearchResult[FileHits]",
    real: str,
    engines: "Engines",
    name: PathNamer,
    scope: str,
) -> Output:
    shown = list(limit_hits(found.items, arguments.max_results, arguments.context_lines))
    returned = sum(hits.count_hits() for hits in shown)
    by_file = arguments.mode != "content"
    listed = found.items[:_MAX_FILES] if by_file else ()
    data = SearchTextData(
        path=real,
        matches=() if by_file or arguments.wants_parts else tuple(list_matches(shown, name, arguments.context_lines)),
        files=tuple(FileCount(path=name(hits.path), matches=hits.count_hits()) for hits in listed),
        matched=tuple(_list_parts(shown, name)) if arguments.wants_parts else (),
    )
    count = len(listed) if by_file else len(shown)
    more = (
        not found.exact or (not by_file and found.total > returned) or len(found.items) > max(len(listed), len(shown))
    )
    total = format_count(found.total if by_file else returned, "match")
    return Output(
        summary=f"{total} in {format_count(count, 'file')}",
        content=f"{total} in {format_count(count, 'file')}. {scope}\n",
        data=data,
        truncated=more,
        meta=build_search_meta(found, engines, found.total if by_file else returned, count),
    )


def _list_parts(items: list[FileHits], name: PathNamer) -> Iterator[GrepMatch]:
    for hits in items:
        path = name(hits.path)
        yield from (GrepMatch(path=path, line=line.number, text=render_line(line)) for line in hits.lines)
