"""What find and grep say alike: names, limits, and where they looked."""

import os
from collections.abc import Callable
from typing import Any

from handrail.tools.shown import counted, shown_name
from handrail.workspace.ignore import ALWAYS
from handrail.workspace.search.engine import LONGEST
from handrail.workspace.search.run import MOST, MOST_BYTES
from handrail.workspace.search.search import Engines, Found
from handrail.workspace.workspace import Opened

_MOST_NAMED = 10
"""Patterns of the settings that an empty answer names."""


def limits_of(found: Found[Any]) -> tuple[str, ...]:
    """The limits that fired, as `meta` names them."""
    return tuple(f"search.{limit}" for limit in found.limits)


def narrow(found: Found[Any], engines: Engines, shown: int, noun: str, how: str) -> tuple[str, ...]:
    """What is missing from the answer, and what to do about it."""
    ends = {
        "time": f"not through in the {engines.seconds:g} s that it has",
        "hits": f"ended at {MOST:,} results",
        "size": f"ended at {MOST_BYTES >> 20} MB of matching lines",
    }
    said: list[str] = [f"The search was {ends[limit]}: narrow {how}." for limit in found.limits]
    if not found.limits and (not found.exact or found.total > shown):
        said.append(f"Only the first {shown:,} {noun} are shown: narrow {how}, or raise maxResults.")
    if found.notes.unreadable:
        places = found.notes.unreadable
        said.append(f"{counted(places, 'place')} could not be read and {_were(places)} passed over.")
    if found.notes.oversized:
        lines = found.notes.oversized
        said.append(f"{counted(lines, 'matching line')} of over {LONGEST >> 20} MB {_were(lines)} passed over.")
    return tuple(said)


def nothing(found: Found[Any], noun: str, where: str) -> str:
    """An answer without results: that there are none is only said where that is known."""
    return (
        f"No {noun}. {where}\n" if found.exact else f"No {noun} so far: the search did not come to its end. {where}\n"
    )


def hidden(found: Found[Any]) -> str:
    """How many names were withheld, as a paragraph of its own."""
    if not found.protected:
        return ""
    return f"\n{counted(found.protected, 'protected name')} {'is' if found.protected == 1 else 'are'} not shown.\n"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def searched(opened: Opened, pattern: str | None, settings: tuple[str, ...], exclude: tuple[str, ...] = ()) -> str:
    """What was looked at and what was not, for an answer that is empty."""
    matching = f", files matching {shown_name(pattern)}" if pattern else ""
    without = f", without {', '.join(map(shown_name, exclude))}" if exclude else ""
    place = "the workspace" if opened.real == "." else shown_name(opened.real)
    inside = opened.relative.split("/")
    ignored = [f"further {name}" if name in inside else name for name in ALWAYS]
    ignored += map(shown_name, settings[:_MOST_NAMED])
    if len(settings) > _MOST_NAMED:
        ignored.append(f"{counted(len(settings) - _MOST_NAMED, 'more pattern')} of the settings")
    return (
        f"Searched {place}{matching}{without}. "
        f"Ignored: {', '.join(ignored)}, what .gitignore and .ignore list, protected names."
    )


def namer(opened: Opened) -> Callable[[bytes], str]:
    """Names paths below a folder as results do."""
    way = "" if opened.relative == "." else f"{opened.relative}/"
    return lambda path: shown_name(opened.root.shown(f"{way}{os.fsdecode(path)}"))
