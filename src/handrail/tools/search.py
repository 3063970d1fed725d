"""The search of a session, with the text of its results."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handrail.protocol.text import escape_unprintable, format_count
from handrail.settings.model import SearchEngine
from handrail.workspace.ignore import ALWAYS_IGNORED
from handrail.workspace.search.engine import MAX_HITS, MAX_LINE_BYTES, MAX_RESULT_BYTES
from handrail.workspace.workspace import OpenPath, Workspace

if TYPE_CHECKING:
    from handrail.workspace.search.search import Engines, SearchResult

_MAX_NAMED_PATTERNS = 10


class SessionSearch:
    """The search of a session, shared by find and grep. The engine is chosen by the first search."""

    def __init__(self, ignore: tuple[str, ...] = (), engine: SearchEngine = "auto") -> None:
        self.ignore = ignore
        self._choice: SearchEngine = engine
        self._engines: Engines | None = None

    def engines(self, workspace: Workspace) -> "Engines":
        """ToolError UNAVAILABLE if there is none."""
        if self._engines is None:
            from handrail.workspace.search.search import choose_engines  # noqa: PLC0415  engine room

            self._engines = choose_engines(workspace, self._choice)
        return self._engines


def build_search_meta(found: "SearchResult[Any]", engines: "Engines", returned: int, files: int) -> dict[str, Any]:
    return {
        "returned": returned,
        "total": found.total if found.exact else max(found.total, returned),
        "total_is_lower_bound": not found.exact,
        "files": files,
        "protected": found.protected,
        "engine": engines.whole.name,
        "limits": tuple(f"search.{limit}" for limit in found.limits),
    }


def describe_omissions(
    found: "SearchResult[Any]", engines: "Engines", shown: int, noun: str, how: str
) -> tuple[str, ...]:
    """What is missing from the result, and how to get it."""
    ends = {
        "time": f"not finished in {engines.seconds:g} s",
        "hits": f"ended at {MAX_HITS:,} results",
        "size": f"ended at {MAX_RESULT_BYTES >> 20} MB of matching lines",
    }
    notes = [f"The search was {ends[limit]}: narrow {how}." for limit in found.limits]
    if not found.limits and (not found.exact or found.total > shown):
        notes.append(f"Only the first {shown:,} {noun} are shown: narrow {how}, or raise maxResults.")
    if found.stats.unreadable:
        places = found.stats.unreadable
        were = "was" if places == 1 else "were"
        notes.append(f"{format_count(places, 'place')} could not be read and {were} passed over.")
    if found.stats.oversized:
        lines = format_count(found.stats.oversized, "matching line")
        were = "was" if found.stats.oversized == 1 else "were"
        notes.append(f"{lines} of over {MAX_LINE_BYTES >> 20} MB {were} passed over.")
    return tuple(notes)


def render_no_results(found: "SearchResult[Any]", noun: str, scope: str) -> str:
    if found.exact:
        return f"No {noun}. {scope}\n"
    return f"No {noun} so far: the search did not come to its end. {scope}\n"


def render_hidden_count(found: "SearchResult[Any]") -> str:
    """How many protected names are not shown, as a paragraph."""
    if not found.protected:
        return ""
    return f"\n{format_count(found.protected, 'protected name')} {'is' if found.protected == 1 else 'are'} not shown.\n"


def describe_search_scope(
    opened: OpenPath, pattern: str | None, settings: tuple[str, ...], exclude: tuple[str, ...] = ()
) -> str:
    """Where a search without hits looked, and what it ignored."""
    matching = f", files matching {escape_unprintable(pattern)}" if pattern else ""
    without = f", without {', '.join(map(escape_unprintable, exclude))}" if exclude else ""
    place = "the workspace" if opened.real == "." else escape_unprintable(opened.real)
    inside = opened.relative.split("/")
    ignored = [f"further {name}" if name in inside else name for name in ALWAYS_IGNORED]
    ignored += map(escape_unprintable, settings[:_MAX_NAMED_PATTERNS])
    if len(settings) > _MAX_NAMED_PATTERNS:
        ignored.append(f"{format_count(len(settings) - _MAX_NAMED_PATTERNS, 'more pattern')} of the settings")
    return (
        f"Searched {place}{matching}{without}. "
        f"Ignored: {', '.join(ignored)}, entries of .gitignore and .ignore, protected names."
    )


def build_path_namer(opened: OpenPath) -> Callable[[bytes], str]:
    prefix = "" if opened.relative == "." else f"{opened.relative}/"
    return lambda path: escape_unprintable(opened.root.display_path(f"{prefix}{os.fsdecode(path)}"))
