"""What find and grep say alike: names, limits, and where they looked."""

import os
from collections.abc import Callable
from typing import Any

from handrail.tools.shown import counted, shown_name
from handrail.workspace.ignore import ALWAYS
from handrail.workspace.search.search import Found
from handrail.workspace.workspace import Opened

_LIMITS = {
    "time": ("search.time", "The search was ended after 1 s"),
    "hits": ("search.hits", "The search was ended at 100,000 results"),
    "size": ("search.size", "The search was ended at 64 MB of matching lines"),
}


def limits_of(found: Found[Any]) -> tuple[str, ...]:
    """The limits that fired, as `meta` names them."""
    return tuple(_LIMITS[limit][0] for limit in found.limits)


def narrow(found: Found[Any], shown: int, noun: str, how: str) -> tuple[str, ...]:
    """What is missing from the answer, and what to do about it."""
    said: list[str] = [f"{_LIMITS[limit][1]}: narrow {how}." for limit in found.limits]
    if not found.limits and (not found.exact or found.total > shown):
        said.append(f"Only the first {shown:,} {noun} are shown: narrow {how}, or raise maxResults.")
    if found.notes.unreadable:
        said.append(f"{counted(found.notes.unreadable, 'place')} could not be read and were passed over.")
    if found.notes.oversized:
        said.append(f"{counted(found.notes.oversized, 'matching line')} of over 16 MB were passed over.")
    return tuple(said)


def searched(place: str, pattern: str | None, exclude: tuple[str, ...] = ()) -> str:
    """What was looked at and what was not, for an answer that is empty."""
    matching = f", files matching {shown_name(pattern)}" if pattern else ""
    without = f", without {', '.join(map(shown_name, exclude))}" if exclude else ""
    ignored = ", ".join(ALWAYS)
    return (
        f"Searched {place}{matching}{without}. Ignored: {ignored}, what .gitignore and .ignore list, protected names."
    )


def place_of(opened: Opened) -> str:
    """The folder, for people."""
    return "the workspace" if opened.real == "." else shown_name(opened.real)


def namer(opened: Opened) -> Callable[[bytes], str]:
    """Names paths below a folder as results do."""
    way = "" if opened.relative == "." else f"{opened.relative}/"
    return lambda path: shown_name(opened.root.shown(f"{way}{os.fsdecode(path)}"))
