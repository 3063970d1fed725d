"""Text that results of several tools share."""

import os
from collections.abc import Callable
from typing import Any

from handrail.edit.diff import Diff
from handrail.protocol.text import escape_unprintable
from handrail.settings.model import SearchEngine
from handrail.workspace.ignore import ALWAYS_IGNORED
from handrail.workspace.search.engine import MAX_HITS, MAX_LINE_BYTES, MAX_RESULT_BYTES
from handrail.workspace.search.search import Engines, SearchResult
from handrail.workspace.workspace import OpenPath, Workspace

# § [tools.shown] How names, counts and changes are written for people and models.

_MAX_DIFF_CHARS = 3_000
"""Characters of a diff that the model is shown."""


def format_count(number: int, noun: str) -> str:
    """1 file, 2,000 files, 3 matches."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def render_diff_body(diff: Diff) -> str:
    """A diff of one file without its header, as much of it as is worth reading."""
    hunks = diff.text.partition("\n+++ ")[2].partition("\n")[2] or diff.text
    if len(hunks) <= _MAX_DIFF_CHARS:
        return hunks
    end = hunks.rfind("\n", 0, _MAX_DIFF_CHARS) + 1
    return f"{hunks[:end]}…\n"


def describe_tolerance(strategy: str) -> str:
    """What was forgiven to find a place, so that who sent it can look at what was meant; empty where nothing was."""
    if strategy == "exact":
        return ""
    from handrail.edit.fuzzy.strategies import FORGIVEN  # noqa: PLC0415  loaded already, where it is not exact

    return f"found but for {FORGIVEN[strategy]}"


# § [tools.preview] The beginning and the end of a text that is too long to be shown whole.

OUTPUT = "@output/"


def build_output_reference(call_id: str) -> str:
    """How `read` is told which kept text it should read."""
    return f"{OUTPUT}{call_id}"


def truncate_with_reference(text: str, budget: int, reference: str) -> str:
    """The beginning and the end of a text, with a line in between that says how to see the rest: within the budget."""
    note = f"\n… {{}} of {len(text)} characters are not shown; read {reference} for all of it …\n"
    return truncate_middle(text, budget, note)


def truncate_middle(text: str, budget: int, note: str) -> str:
    """A quarter of the budget for the beginning, the rest for the end; `{}` in the note is how much is left out."""
    room = budget - len(note.format(len(text)))
    head, tail = room // 4, len(text) - (room - room // 4)
    # Between lines where a line ends near the place, so that a long line does not push everything else out.
    head = text.rfind("\n", head // 2, head) + 1 or head
    tail = text.find("\n", tail, tail + room // 4) + 1 or tail
    return f"{text[:head]}{note.format(tail - head)}{text[tail:]}"


# § [tools.search_words] What find and grep say alike: names, limits, and where they looked.

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


# § [tools.searching] The engine that find and grep of one session share. What searching takes is loaded by the
# § first search.


class SessionSearch:
    """How a session searches; the program is looked for when it is first needed."""

    def __init__(self, ignore: tuple[str, ...] = (), engine: SearchEngine = "auto") -> None:
        self.ignore = ignore
        self._choice: SearchEngine = engine
        self._engines: Engines | None = None

    def engines(self, workspace: Workspace) -> "Engines":
        """The engines; ToolError UNAVAILABLE where there are none."""
        if self._engines is None:
            from handrail.workspace.search.search import choose_engines  # noqa: PLC0415  see above

            self._engines = choose_engines(workspace, self._choice)
        return self._engines
