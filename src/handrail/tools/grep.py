"""The tool grep."""

import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import takewhile
from typing import Annotated

import msgspec
from msgspec import Meta

from handrail.protocol.errors import ToolError
from handrail.protocol.text import escape_unprintable
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.text import (
    OUTPUT,
    SessionSearch,
    build_path_namer,
    describe_omissions,
    describe_search_scope,
    format_count,
    list_fired_limits,
    render_hidden_count,
    render_no_results,
)
from handrail.tools.tool import Context, Output, Outputs, Tool, Touches
from handrail.workspace.errors import to_tool_error
from handrail.workspace.search.engine import MAX_RESULT_BYTES, FileHits, HitLine, Pattern, SearchScope
from handrail.workspace.search.ripgrep_output import build_line_break_error
from handrail.workspace.search.search import STREAM_SECONDS, Engines, SearchResult, find_hits, find_in_stream
from handrail.workspace.text import decode_page, detect_encoding
from handrail.workspace.workspace import OpenPath

# § [tools.grep] grep: lines by what is in them.


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

        return grep(searching, outputs, context, arguments)

    return Tool(GREP, run, _touches)


def _touches(arguments: GrepArguments) -> Touches:
    return Touches() if arguments.path.startswith(OUTPUT) else Touches(reads=(arguments.path,))


# § [tools.grep_answer] What grep says: matches for programs, lines grouped by file for models.

Name = Callable[[bytes], str]


def build_grep_output(
    arguments: GrepArguments, found: SearchResult[FileHits], real: str, engines: Engines, name: Name, empty: str
) -> Output:
    """The result of a search in one folder or file."""
    shown = list(_first(found.items, arguments.max_results, arguments.context_lines))
    returned = sum(hits.count_hits() for hits in shown)
    more = found.total > returned or not found.exact
    return Output(
        summary=_summary(returned, len(shown), found),
        content=("\n".join(_grouped(hits, name) for hits in shown) or render_no_results(found, "matches", empty))
        + render_hidden_count(found),
        data=GrepData(path=real, matches=tuple(_matches(shown, name, arguments.context_lines))),
        whole=_whole(found, name) if found.exact and more else None,
        truncated=more,
        meta={
            "returned": returned,
            "total": found.total if found.exact else max(found.total, returned),
            "total_is_lower_bound": not found.exact,
            "files": len(found.items) if found.exact else len(shown),
            "protected": found.protected,
            "engine": engines.whole.name,
            "limits": list_fired_limits(found),
        },
        warnings=describe_omissions(found, engines, returned, "matches", "path, filePattern or pattern"),
    )


def _summary(returned: int, files: int, found: SearchResult[FileHits]) -> str:
    if not returned:
        return "No matches" if found.exact else "No matches so far"
    if found.total > returned or not found.exact:
        least = "" if found.exact else "at least "
        return f"{returned:,} of {least}{format_count(found.total, 'match')}, in {format_count(files, 'file')}"
    return f"{format_count(returned, 'match')} in {format_count(files, 'file')}"


def _whole(found: SearchResult[FileHits], name: Name) -> str | None:
    """All of them; None where they are too much to be kept."""
    parts: list[str] = []
    size = 0
    for hits in found.items:
        parts.append(_grouped(hits, name))
        size += len(parts[-1])
        if size > MAX_RESULT_BYTES:
            return None
    return "\n".join(parts)


def _first(items: list[FileHits], most: int, context: int) -> Iterator[FileHits]:
    """So many matches in all, each with its neighbours."""
    for hits in items:
        if most <= 0:
            return
        count = hits.count_hits()
        yield hits if count <= most else FileHits(hits.path, _until(hits.lines, most, context))
        most -= count


def _until(lines: tuple[HitLine, ...], most: int, context: int) -> tuple[HitLine, ...]:
    """The lines up to a match, and its neighbours up to the next match: what a run knows of that depends on the run."""
    seen = 0
    for index, line in enumerate(lines):
        seen += bool(line.spans)
        if seen == most:
            rest = takewhile(lambda after: not after.spans, lines[index + 1 : index + 1 + context])
            return (*lines[: index + 1], *(after for after in rest if after.number <= line.number + context))
    return lines


def _grouped(hits: FileHits, name: Name) -> str:
    """The file's name on a line of its own, so that no colon in it is taken for another."""
    rows = [name(hits.path)]
    width = len(str(hits.lines[-1].number))
    apart = any(not line.spans for line in hits.lines)
    before: int | None = None
    for line in hits.lines:
        if apart and before is not None and line.number > before + 1:
            rows.append("  --")
        rows.append(f"  {line.number:>{width}}{':' if line.spans else '-'} {_text(line)}")
        before = line.number
    return "\n".join(rows) + "\n"


def _matches(items: list[FileHits], name: Name, context: int) -> Iterator[GrepMatch]:
    for hits in items:
        path = name(hits.path)
        texts = {line.number: _text(line) for line in hits.lines}
        for line in hits.lines:
            if line.spans:
                yield GrepMatch(
                    path=path,
                    line=line.number,
                    text=texts[line.number],
                    before=_near(texts, range(line.number - context, line.number)),
                    after=_near(texts, range(line.number + 1, line.number + context + 1)),
                )


def _near(texts: dict[int, str], numbers: range) -> tuple[str, ...]:
    return tuple(texts[number] for number in numbers if number in texts)


def _text(line: HitLine) -> str:
    """The line as text, and marked where it goes on."""
    text = decode_page(line.data, detect_encoding(line.data) or "utf-8")[0]
    visible = text if text.isprintable() else "".join(c if c == "\t" else escape_unprintable(c) for c in text)
    return f"{'…' if line.cut_before else ''}{visible}{'…' if line.cut_after else ''}"


# § [tools.grepping] How grep searches: a folder, one file, or a kept output.


def grep(searching: SessionSearch, outputs: Outputs, context: Context, arguments: GrepArguments) -> Output:
    """Runs the search and words the answer."""
    engines = searching.engines(context.workspace)
    pattern = _pattern(arguments)
    if arguments.path.startswith(OUTPUT):
        descriptor = outputs.open(arguments.path.removeprefix(OUTPUT))
        try:
            return _grep_stream(engines, descriptor, pattern, context, arguments, arguments.path)
        finally:
            os.close(descriptor)
    opened = _folder(context, arguments.path)
    if opened is not None:
        with opened:
            return _grep_folder(searching, engines, opened, pattern, context, arguments)
    with context.workspace.open_file(arguments.path) as file:
        return _grep_stream(engines, file.descriptor, pattern, context, arguments, file.real)


def _pattern(arguments: GrepArguments) -> Pattern:
    text = arguments.pattern
    if "\n" in text:
        raise build_line_break_error()
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError("INVALID_ARGUMENT", "pattern is not valid text (a lone surrogate).") from None
    if "\0" in text:
        raise ToolError("INVALID_ARGUMENT", "pattern holds a NUL character; files with NULs are binary, not searched.")
    return Pattern(text, arguments.case_sensitive, arguments.context_lines)


def _folder(context: Context, path: str) -> OpenPath | None:
    """The folder that is to be searched; None where the path is no folder."""
    try:
        return context.workspace.open_folder(path)
    except ToolError as error:
        if error.code == "NOT_FOUND":
            raise context.workspace.not_found(path, "file or folder") from None
        if error.code != "NOT_A_DIRECTORY":
            raise
    return None


def _grep_folder(
    searching: SessionSearch,
    engines: Engines,
    opened: OpenPath,
    pattern: Pattern,
    context: Context,
    arguments: GrepArguments,
) -> Output:
    scope = SearchScope(
        opened.descriptor,
        opened.root.descriptor,
        opened.relative,
        context.workspace.kernel,
        include=arguments.file_pattern,
        ignore=searching.ignore,
        list_protected=partial(context.workspace.list_protected_names, opened),
        credential_files=cache(context.workspace.credential_files),
    )
    try:
        found = find_hits(engines, scope, pattern, arguments.max_results, context.cancelled)
    except OSError as error:  # the folder was moved while it was looked at
        raise to_tool_error(error, arguments.path) from None
    context.check_cancelled()
    empty = describe_search_scope(opened, arguments.file_pattern, searching.ignore)
    return build_grep_output(arguments, found, opened.real, engines, build_path_namer(opened), empty)


def _grep_stream(
    engines: Engines, descriptor: int, pattern: Pattern, context: Context, arguments: GrepArguments, real: str
) -> Output:
    """A file that was named is searched through the descriptor that was opened: there is nothing to look at again."""
    found = find_in_stream(engines, descriptor, pattern, context.cancelled)
    context.check_cancelled()
    name = escape_unprintable(real)
    longer = msgspec.structs.replace(engines, seconds=STREAM_SECONDS)
    return build_grep_output(arguments, found, real, longer, lambda _: name, f"Searched {name}.")
