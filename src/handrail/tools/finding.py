"""How find finds, and what it says."""

from collections.abc import Callable
from functools import partial

from handrail.protocol.text import escape_unprintable
from handrail.tools.contract import Context, Output
from handrail.tools.find import FindArguments, FindData
from handrail.tools.search_words import (
    build_path_namer,
    describe_omissions,
    describe_search_scope,
    list_fired_limits,
    render_hidden_count,
    render_no_results,
)
from handrail.tools.searching import SessionSearch
from handrail.tools.shown import format_count
from handrail.workspace.errors import to_tool_error
from handrail.workspace.search.engine import SearchScope
from handrail.workspace.search.search import Engines, SearchResult, find_files
from handrail.workspace.workspace import OpenPath


def find(searching: SessionSearch, context: Context, arguments: FindArguments) -> Output:
    """Runs the search and words the answer."""
    engines = searching.engines(context.workspace)
    with context.workspace.open_folder(arguments.path) as opened:
        scope = SearchScope(
            opened.descriptor,
            opened.root.descriptor,
            opened.relative,
            context.workspace.kernel,
            arguments.pattern,
            arguments.exclude,
            searching.ignore,
            list_protected=partial(context.workspace.list_protected_names, opened),
        )
        try:
            found = find_files(engines, scope, arguments.max_results, context.cancelled)
        except OSError as error:  # the folder was moved while it was looked at
            raise to_tool_error(error, arguments.path) from None
        context.check_cancelled()
        empty = describe_search_scope(opened, arguments.pattern, searching.ignore, arguments.exclude)
        return _output(arguments, found, opened, engines, empty)


def _output(
    arguments: FindArguments, found: SearchResult[bytes], opened: OpenPath, engines: Engines, empty: str
) -> Output:
    name = build_path_namer(opened)
    shown = [name(path) for path in found.items[: arguments.max_results]]
    more = found.total > len(shown) or not found.exact
    content = "".join(f"{path}\n" for path in shown)
    return Output(
        summary=_summary(len(shown), found, arguments.path),
        content=(content or render_no_results(found, "files", empty)) + render_hidden_count(found),
        data=FindData(path=opened.real, files=tuple(shown)),
        whole=_whole(found, shown, name),
        truncated=more,
        meta={
            "returned": len(shown),
            "total": found.total if found.exact else max(found.total, len(shown)),
            "total_is_lower_bound": not found.exact,
            "files": len(shown),
            "protected": found.protected,
            "engine": engines.whole.name,
            "limits": list_fired_limits(found),
        },
        warnings=describe_omissions(found, engines, len(shown), "files", "path, pattern or exclude"),
    )


def _whole(found: SearchResult[bytes], shown: list[str], name: Callable[[bytes], str]) -> str | None:
    """All of them, where all are known and not all are shown."""
    if not found.exact or found.total <= len(shown):
        return None
    return "".join(f"{path}\n" for path in (*shown, *map(name, found.items[len(shown) :])))


def _summary(shown: int, found: SearchResult[bytes], path: str) -> str:
    place = "" if path == "." else f" in {escape_unprintable(path)[:200]}"
    if not shown:
        return f"No files{'' if found.exact else ' so far'}{place}"
    if shown < found.total or not found.exact:
        least = "" if found.exact else "at least "
        return f"{shown:,} of {least}{format_count(found.total, 'file')}{place}"
    return f"{format_count(shown, 'file')}{place}"
