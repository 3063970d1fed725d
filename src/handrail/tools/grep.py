"""The tool grep."""

import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from handrail.protocol.errors import ToolError
from handrail.protocol.text import escape_unprintable, format_count
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.store.conversation_state import OUTPUT
from handrail.tools.search import (
    SessionSearch,
    build_path_namer,
    build_search_meta,
    describe_omissions,
    describe_search_scope,
    render_hidden_count,
    render_no_results,
)
from handrail.tools.tool import Context, Output, Outputs, Tool, Touches
from handrail.workspace.errors import to_tool_error
from handrail.workspace.search.engine import MAX_RESULT_BYTES, FileHits, HitLine, Pattern, SearchScope
from handrail.workspace.text import decode_page, detect_encoding
from handrail.workspace.workspace import OpenPath

if TYPE_CHECKING:
    from handrail.workspace.search.search import Engines, SearchResult

PathNamer = Callable[[bytes], str]
BuildOutput = Callable[..., Output]
"""Makes the output of a search in one folder or file, as `build_grep_output` does."""


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
    case_sensitive: Annotated[bool, Meta(description="Whether case matters.")] = True
    context_lines: Annotated[int, Meta(ge=0, le=20, description="Lines to show before and after each match.")] = 0
    max_results: Annotated[
        int, Meta(ge=1, le=10_000, description="Maximum matching lines to return.", extra={"unit": "lines"})
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


def build_grep_tool(searching: SessionSearch, outputs: Outputs) -> Tool:
    return Tool(GREP, partial(grep, searching, outputs, build_grep_output), declare_touches)


def declare_touches(arguments: GrepArguments) -> Touches:
    return Touches() if arguments.path.startswith(OUTPUT) else Touches(reads=(arguments.path,))


def grep(
    searching: SessionSearch, outputs: Outputs, build: BuildOutput, context: Context, arguments: GrepArguments
) -> Output:
    engines = searching.engines(context.workspace)
    pattern = _build_pattern(arguments)
    if arguments.path.startswith(OUTPUT):
        descriptor = outputs.open(arguments.path.removeprefix(OUTPUT))
        try:
            return _grep_stream(engines, descriptor, pattern, context, arguments, arguments.path, build)
        finally:
            os.close(descriptor)
    opened = _open_folder(context, arguments.path)
    if opened is not None:
        with opened:
            return _grep_folder(searching, engines, opened, pattern, context, arguments, build)
    with context.workspace.open_file(arguments.path) as file:
        return _grep_stream(engines, file.descriptor, pattern, context, arguments, file.real, build)


def _build_pattern(arguments: GrepArguments) -> Pattern:
    from handrail.workspace.search.ripgrep import build_line_break_error  # noqa: PLC0415  engine room

    text = arguments.pattern
    multiline: bool = getattr(arguments, "multiline", False)
    if "\n" in text and not multiline:
        raise build_line_break_error()
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError("INVALID_ARGUMENT", "pattern is not valid text (a lone surrogate).") from None
    if "\0" in text:
        raise ToolError("INVALID_ARGUMENT", "pattern holds a NUL character; files with NULs are binary, not searched.")
    if getattr(arguments, "wants_parts", False):
        return Pattern(text, arguments.case_sensitive, only_matching=True)
    return Pattern(text, arguments.case_sensitive, arguments.context_lines, multiline)


def _open_folder(context: Context, path: str) -> OpenPath | None:
    """The folder to search. None if the path is not a folder."""
    try:
        return context.workspace.open_folder(path)
    except ToolError as error:
        if error.code == "NOT_FOUND":
            raise context.workspace.build_not_found_error(path, "file or folder") from None
        if error.code != "NOT_A_DIRECTORY":
            raise
    return None


def _grep_folder(
    searching: SessionSearch,
    engines: "Engines",
    opened: OpenPath,
    pattern: Pattern,
    context: Context,
    arguments: GrepArguments,
    build: BuildOutput,
) -> Output:
    from handrail.workspace.search.search import find_hits  # noqa: PLC0415  engine room

    scope = SearchScope(
        opened.descriptor,
        opened.root.descriptor,
        opened.relative,
        context.workspace.kernel,
        include=arguments.file_pattern,
        ignore=searching.ignore,
        protected=context.workspace.sensitive_paths.list_known(opened.root, opened.relative),
        credential_files=cache(context.workspace.credential_files),
    )
    try:
        found = find_hits(engines, scope, pattern, arguments.max_results, context.cancelled)
    except OSError as error:  # another program moved the folder
        raise to_tool_error(error, arguments.path) from None
    described = describe_search_scope(opened, arguments.file_pattern, searching.ignore)
    return build(arguments, found, opened.real, engines, build_path_namer(opened), described)


def _grep_stream(
    engines: "Engines",
    descriptor: int,
    pattern: Pattern,
    context: Context,
    arguments: GrepArguments,
    real: str,
    build: BuildOutput,
) -> Output:
    """Searches one open file. Its hits need no second check, unlike those in a folder."""
    from handrail.workspace.search.search import STREAM_SECONDS, find_in_stream  # noqa: PLC0415  engine room

    found = find_in_stream(engines, descriptor, pattern, context.cancelled)
    name = escape_unprintable(real)
    longer = msgspec.structs.replace(engines, seconds=STREAM_SECONDS)

    def namer(_: bytes) -> str:
        return name

    return build(arguments, found, real, longer, namer, f"Searched {name}.")


def build_grep_output(
    arguments: GrepArguments,
    found: "SearchResult[FileHits]",
    real: str,
    engines: "Engines",
    name: PathNamer,
    scope: str,
) -> Output:
    """The output of a search in one folder or file. `scope` says where a search without hits looked."""
    shown = list(limit_hits(found.items, arguments.max_results, arguments.context_lines))
    returned = sum(hits.count_hits() for hits in shown)
    more = found.total > returned or not found.exact
    return Output(
        summary=_summarize(returned, len(shown), found),
        content=("\n".join(_render_hits(hits, name) for hits in shown) or render_no_results(found, "matches", scope))
        + render_hidden_count(found),
        data=GrepData(path=real, matches=tuple(list_matches(shown, name, arguments.context_lines))),
        whole=_render_all(found, name, MAX_RESULT_BYTES) if found.exact and more else None,
        truncated=more,
        meta=build_search_meta(found, engines, returned, len(found.items) if found.exact else len(shown)),
        warnings=describe_omissions(found, engines, returned, "matches", "path, filePattern or pattern"),
    )


def _summarize(returned: int, files: int, found: "SearchResult[FileHits]") -> str:
    if not returned:
        return "No matches" if found.exact else "No matches so far"
    if found.total > returned or not found.exact:
        least = "" if found.exact else "at least "
        return f"{returned:,} of {least}{format_count(found.total, 'match')}, in {format_count(files, 'file')}"
    return f"{format_count(returned, 'match')} in {format_count(files, 'file')}"


def _render_all(found: "SearchResult[FileHits]", name: PathNamer, most: int) -> str | None:
    """All hits. None if they are too long to be stored."""
    parts: list[str] = []
    size = 0
    for hits in found.items:
        parts.append(_render_hits(hits, name))
        size += len(parts[-1])
        if size > most:
            return None
    return "\n".join(parts)


def limit_hits(items: list[FileHits], most: int, context: int) -> Iterator[FileHits]:
    for hits in items:
        if most <= 0:
            return
        count = hits.count_hits()
        yield hits if count <= most else FileHits(hits.path, _limit_lines(hits.lines, most, context))
        most -= count


def _limit_lines(lines: tuple[HitLine, ...], most: int, context: int) -> tuple[HitLine, ...]:
    """The lines up to the last match, and its context up to the next match."""
    seen = 0
    for index, line in enumerate(lines):
        seen += line.is_hit
        if seen == most:
            rest = takewhile(lambda after: not after.is_hit, lines[index + 1 : index + 1 + context])
            return (*lines[: index + 1], *(after for after in rest if after.number <= line.number + context))
    return lines


def _render_hits(hits: FileHits, name: PathNamer) -> str:
    """The path has a line of its own, since it may contain colons."""
    rows = [name(hits.path)]
    width = len(str(hits.lines[-1].number))
    has_context = any(not line.is_hit for line in hits.lines)
    before: int | None = None
    for line in hits.lines:
        if has_context and before is not None and line.number > before + 1:
            rows.append("  --")
        rows.append(f"  {line.number:>{width}}{':' if line.is_hit else '-'} {render_line(line)}")
        before = line.number
    return "\n".join(rows) + "\n"


def list_matches(items: list[FileHits], name: PathNamer, context: int) -> Iterator[GrepMatch]:
    for hits in items:
        path = name(hits.path)
        texts = {line.number: render_line(line) for line in hits.lines}
        for line in hits.lines:
            if line.is_hit:
                yield GrepMatch(
                    path=path,
                    line=line.number,
                    text=texts[line.number],
                    before=_pick_lines(texts, range(line.number - context, line.number)),
                    after=_pick_lines(texts, range(line.number + 1, line.number + context + 1)),
                )


def _pick_lines(texts: dict[int, str], numbers: range) -> tuple[str, ...]:
    return tuple(texts[number] for number in numbers if number in texts)


def render_line(line: HitLine) -> str:
    """The printable text of a line, with an ellipsis where it is cut."""
    text = decode_page(line.data, detect_encoding(line.data) or "utf-8")[0]
    visible = text if text.isprintable() else "".join(c if c == "\t" else escape_unprintable(c) for c in text)
    return f"{'…' if line.cut_before else ''}{visible}{'…' if line.cut_after else ''}"
