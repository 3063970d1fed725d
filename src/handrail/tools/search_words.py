"""What find and grep say alike: names, limits, and where they looked."""

import os
from collections.abc import Callable
from typing import Any

from handrail.protocol.text import escape_unprintable
from handrail.tools.shown import format_count
from handrail.workspace.ignore import ALWAYS_IGNORED
from handrail.workspace.search.engine import MAX_HITS, MAX_LINE_BYTES, MAX_RESULT_BYTES
from handrail.workspace.search.search import Engines, SearchResult
from handrail.workspace.workspace import OpenPath

_MAX_NAMED_PATTERNS = 10
"""Patterns of the settings that an empty answer names."""


def list_fired_limits(found: SearchResult[Any]) -> tuple[str, ...]:
    """The limits that fired, as `meta` names them."""
    return tuple(f"search.{limit}" for limit in found.limits)


def describe_omissions(found: SearchResult[Any], engines: Engines, shown: int, noun: str, how: str) -> tuple[str, ...]:
    """What is missing from the answer, and what to do about it."""
    ends = {
        "time": f"not through in the {engines.seconds:g} s that it has",
        "hits": f"ended at {MAX_HITS:,} results",
        "size": f"ended at {MAX_RESULT_BYTES >> 20} MB of matching lines",
    }
    said: list[str] = [f"The search was {ends[limit]}: narrow {how}." for limit in found.limits]
    if not found.limits and (not found.exact or found.total > shown):
        said.append(f"Only the first {shown:,} {noun} are shown: narrow {how}, or raise maxResults.")
    if found.stats.unreadable:
        places = found.stats.unreadable
        said.append(f"{format_count(places, 'place')} could not be read and {_were(places)} passed over.")
    if found.stats.oversized:
        lines = found.stats.oversized
        said.append(
            f"{format_count(lines, 'matching line')} of over {MAX_LINE_BYTES >> 20} MB {_were(lines)} passed over."
        )
    return tuple(said)


def render_no_results(found: SearchResult[Any], noun: str, where: str) -> str:
    """An answer without results: that there are none is only said where that is known."""
    return (
        f"No {noun}. {where}\n" if found.exact else f"No {noun} so far: the search did not come to its end. {where}\n"
    )


def render_hidden_count(found: SearchResult[Any]) -> str:
    """How many names were withheld, as a paragraph of its own."""
    if not found.protected:
        return ""
    return f"\n{format_count(found.protected, 'protected name')} {'is' if found.protected == 1 else 'are'} not shown.\n"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def describe_search_scope(
    opened: OpenPath, pattern: str | None, settings: tuple[str, ...], exclude: tuple[str, ...] = ()
) -> str:
    """What was looked at and what was not, for an answer that is empty."""
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
        f"Ignored: {', '.join(ignored)}, what .gitignore and .ignore list, protected names."
    )


def build_path_namer(opened: OpenPath) -> Callable[[bytes], str]:
    """Names paths below a folder as results do."""
    way = "" if opened.relative == "." else f"{opened.relative}/"
    return lambda path: escape_unprintable(opened.root.display_path(f"{way}{os.fsdecode(path)}"))
