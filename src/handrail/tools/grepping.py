"""How grep searches: a folder, one file, or a kept output."""

import os
from functools import cache, partial

import msgspec

from handrail.protocol.errors import ToolError
from handrail.protocol.text import escape_unprintable
from handrail.tools.contract import Context, Output, Outputs
from handrail.tools.grep import GrepArguments
from handrail.tools.grep_answer import build_grep_output
from handrail.tools.preview import OUTPUT
from handrail.tools.search_words import build_path_namer, describe_search_scope
from handrail.tools.searching import SessionSearch
from handrail.workspace.errors import to_tool_error
from handrail.workspace.search.engine import Pattern, SearchScope
from handrail.workspace.search.ripgrep_output import build_line_break_error
from handrail.workspace.search.search import STREAM_SECONDS, Engines, find_hits, find_in_stream
from handrail.workspace.workspace import OpenPath


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
