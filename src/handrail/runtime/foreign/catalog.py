"""Tools of other servers."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from handrail.policy.config import MCP_PREFIX, TrustedServer, is_mcp_tool_excluded
from handrail.policy.decide import is_read_only_tool
from handrail.protocol.decisions import ForeignFact
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import PERMISSIONS
from handrail.protocol.text import clip_text, render_value
from handrail.protocol.tool_spec import OWN_SERVER, ToolSpec
from handrail.runtime.foreign.call import build_foreign_tool
from handrail.runtime.foreign.pins import PinStore, compute_fingerprint, to_description
from handrail.runtime.foreign.schema import MAX_LISTED_TOOLS, find_tool_problem
from handrail.runtime.foreign.source import ForeignTool, ToolSource, split_tool_name
from handrail.runtime.registry import (
    MAX_OFFERED_TOOLS,
    MAX_SPEC_CHARACTERS,
    ToolRegistry,
    find_nearest_name,
    select_fitting,
)
from handrail.tools.tool import Tool

# § [runtime.foreign.taking_over] Takes sources over, so that a session has them and ends them; what is none is
# § refused.

_METHODS = ("listed", "call", "problems", "close")
_ALL_ENDED_SECONDS = 15.0
"""Seconds that all of them have to end."""


def check_sources(sources: tuple[ToolSource, ...]) -> None:
    """UsageError where a source is none, has no name, or that of another one."""
    for source in sources:
        if missing := _missing(source):
            raise UsageError(
                f"{render_value(source)} is no source of tools: it has no {missing}. sources takes a list of objects"
                " with the"
                " members of handrail.runtime.foreign.source.ToolSource"
            )
    names = [source.server for source in sources]
    for name in names:
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"a source has the name {render_value(name)}; a server is called by letters, digits, _ and -"
            )
        if name.casefold() == OWN_SERVER:
            raise UsageError(
                f"a source is called {render_value(name)}, as handrail itself: its tools would be shown as ours"
            )
        if names.count(name) > 1:
            raise UsageError(f"two sources are called {render_value(name)}; calls could not tell them apart")
    for source in sources:
        if unknown := [one for one in source.reach if one not in PERMISSIONS]:
            claim = f"the source {source.server} has the reach {render_value(unknown[0])}, which is no permission"
            raise UsageError(f"{claim}; there are {', '.join(PERMISSIONS)}")


def close_sources(sources: tuple[ToolSource, ...]) -> None:
    """Ends all of them side by side, and waits only so long: one that does not end is left to itself."""
    closing = [threading.Thread(target=_close, args=(source,), daemon=True) for source in sources]
    for thread, source in zip(closing, sources, strict=True):
        try:
            thread.start()
        except RuntimeError:  # none can be had, as when the program ends
            _close(source)
    until = time.monotonic() + _ALL_ENDED_SECONDS
    for thread in closing:
        if thread.ident is not None:
            thread.join(max(0.0, until - time.monotonic()))


def _missing(source: object) -> str:
    """What of a source it does not have. A property that fails is there: what it fails of is told when it is used."""
    if isinstance(source, type) or not _has(source, "server"):
        return "server"
    missing = [f"{name}()" for name in _METHODS if not callable(getattr(source, name, None))]
    return missing[0] if missing else "" if _has(source, "reach") else "reach"


def _has(source: object, name: str) -> bool:
    return hasattr(type(source), name) or name in getattr(source, "__dict__", {})


def _close(source: ToolSource) -> None:
    with suppress(Exception):
        source.close()


# § [runtime.foreign.servers] The other servers of a session: what they list is offered, what they change is
# § noticed, and told.

Warn = Callable[[str, str], None]
"""Tells a person, by a code or rule and a text."""
_MAX_TOLD_TOOLS = 20
"""Tools of one listing that a person is warned about one by one."""
_MAX_SESSION_WARNINGS = 500
"""Warnings of one session: who lists others all the time could go on for ever."""


class _Listing(NamedTuple):
    revision: int | None
    tools: tuple[Tool, ...]
    listed: dict[str, ForeignTool]
    """By the server's own names."""


class ForeignCatalog:
    """All sources of a session. Any thread may ask."""

    def __init__(
        self,
        sources: tuple[ToolSource, ...],
        known: PinStore,
        vouched: tuple[TrustedServer, ...],
        warn: Warn,
        *disable: str,
    ) -> None:
        self._sources = {source.server: source for source in sources}
        self._disable = tuple(name for name in disable if name.casefold().startswith(MCP_PREFIX))
        self._known, self._vouched, self._warn = known, vouched, warn
        self._lock = threading.Lock()
        self._listings: dict[str, _Listing] = {}
        self._told: set[str] = set()
        self._untold: list[tuple[str, str]] = []
        self._gone: dict[str, str] = {}
        """Names that were offered, or could have been, and why they are not."""
        self._closed = False

    def refresh(self, renew: Callable[[], None]) -> None:
        """Asks them what they list, where that may have changed, and has it offered then: `renew` takes it by
        `renewed`. Who comes meanwhile waits, so that nobody goes by what was."""
        with self._lock:
            if not self._closed and self._is_new():
                renew()
            untold, self._untold = self._untold, []
        for code, text in untold:  # who hears of it may ask for the tools
            self._warn(code, text)

    def extend_registry(self, registry: ToolRegistry, is_off: Callable[[str], bool]) -> ToolRegistry:
        """The registry with what the servers listed last. `is_off`: whether a tool is not to be offered anyway."""
        self._tell_unmatched()
        return registry.with_foreign(self._fitting(self._named(registry), is_off))

    def why_gone(self, name: str) -> str:
        """Why there is no tool of a name, in words; empty where nothing is known."""
        if name in self._gone:
            return self._gone[name]
        server = (split_tool_name(name) or (None,))[0]
        source = self._sources.get(server) if server is not None else None
        if source is None:
            return ""
        if any(tool.spec.name == name for listing in self._listings.values() for tool in listing.tools):
            return "it is off"
        with suppress(Exception):
            if problems := source.problems():
                return f"{server}: {clip_text('; '.join(problems), 300)}"
        return f"the server {server} lists no such tool"

    def approve(self, spec: ToolSpec) -> None:
        """A person said yes to a tool as it is now."""
        listing, foreign = self._listings.get(spec.server), spec.foreign
        if listing is None or foreign is None or (listed := listing.listed.get(foreign.name)) is None:
            return
        told = to_description(listed)
        if compute_fingerprint(told) == foreign.fingerprint:  # what it became meanwhile, nobody said yes to
            self._known.approve(spec.server, told)

    def close(self) -> None:
        """Ends all of them."""
        self._closed = True
        close_sources(tuple(self._sources.values()))

    def _is_new(self) -> bool:
        """Whether a server lists something else than before."""
        changed = False
        for server, source in self._sources.items():
            revision = _revision(source)
            before = self._listings.get(server)
            if before is None or revision is None or before.revision != revision:
                self._listings[server] = self._listing(source, revision)
                changed = True
        return changed

    def _listing(self, source: ToolSource, revision: int | None) -> _Listing:
        server = source.server
        listed = self._sound(server, self._asked(source))
        met = self._known.observe(server, [to_description(one) for one in listed])
        for tool, parts in met.changed.items():
            told = f"{server} describes its tool {render_value(tool)} otherwise than before ({parts})"
            self._tell("tool.changed", f"{told}. The next call of it asks.")
        if met.not_stored:
            told = f"{server} has listed so many different tools by now that its new ones are not offered"
            self._tell("LIMIT_EXCEEDED", f"{told}. To begin anew with it, remove {self._known.place(server)}.")
            listed = [one for one in listed if one.name not in met.not_stored]
        tools = tuple(
            build_foreign_tool(source, one, self._known, looks=is_read_only_tool(_fact(server, one), self._vouched))
            for one in listed
        )
        return _Listing(revision, tools, {one.name: one for one in listed})

    def _asked(self, source: ToolSource) -> tuple[object, ...]:
        try:
            return tuple(source.listed())
        except Exception as error:  # whatever it is: the session goes on without it
            what = clip_text(f"{type(error).__name__}: {error}", 200)
            self._tell("UNAVAILABLE", f"The tools of {source.server} cannot be listed ({what}). None is offered.")
            return ()

    def _sound(self, server: str, listed: tuple[object, ...]) -> list[ForeignTool]:
        """Those that can be offered; a person is told why others are not."""
        if len(listed) > MAX_LISTED_TOOLS:
            told = f"{server} lists {len(listed):,} tools; those after the first {MAX_LISTED_TOOLS} are not offered"
            self._tell("LIMIT_EXCEEDED", f"{told}.")
        found: dict[str, ForeignTool] = {}
        refused: list[tuple[object, str]] = []
        for one in listed[:MAX_LISTED_TOOLS]:
            why = find_tool_problem(one)
            if not isinstance(one, ForeignTool) or why:
                refused.append((getattr(one, "name", None), why))
            elif found.setdefault(one.name, one) != one:
                refused.append((one.name, "it is listed twice, each time otherwise"))
        for name, why in refused[:_MAX_TOLD_TOOLS]:
            self._tell("INVALID_ARGUMENT", f"A tool of {server} is not offered: {render_value(name)}: {why}.")
        unsound = [name for name, _ in refused]
        return [one for one in found.values() if one.name not in unsound]

    def _named(self, registry: ToolRegistry) -> list[Tool]:
        """All of them under their names; of two that would have one name, neither."""
        tools = [tool for listing in self._listings.values() for tool in listing.tools]
        names = Counter((*registry.other_names, *(tool.spec.name for tool in tools)))
        before = {name for name in registry.names if name.startswith(MCP_PREFIX)}
        self._gone = {}
        for tool in tools:
            if names[name := tool.spec.name] > 1:
                self._gone[name] = "another tool has the same name"
                self._tell("CONFLICT", f"{tool.spec.label} is not offered: another tool has the name {name}, too.")
        for name in before - names.keys():
            self._gone[name] = self._why_dropped(registry, name)
        return [tool for tool in tools if tool.spec.name not in self._gone]

    def _fitting(self, tools: list[Tool], is_off: Callable[[str], bool]) -> list[Tool]:
        """Those that there is room for, and those that need none."""
        wanted = [tool for tool in tools if not is_off(tool.spec.name)]
        fits = select_fitting(tool.spec for tool in wanted)
        left_out = [tool for tool in wanted if tool.spec.name not in fits]
        self._gone |= {tool.spec.name: "there are too many tools of other servers" for tool in left_out}
        for server, count in Counter(tool.spec.server for tool in left_out).items():
            most = MAX_OFFERED_TOOLS
            told = f"{count} of the tools of {server} are not offered: other servers' tools may be {most}, and"
            more = (
                f'[tools] disable takes away what is not needed ("{MCP_PREFIX}{server}", "{MCP_PREFIX}{server}__get_*")'
            )
            self._tell("LIMIT_EXCEEDED", f"{told} {MAX_SPEC_CHARACTERS:,} characters, in all. {more}.")
        return [tool for tool in tools if tool.spec.name not in self._gone]

    def _tell_unmatched(self) -> None:
        """Tells what the settings disable that no server lists, once all of them list something."""
        listings = self._listings.values()
        names = [tool.spec.name for listing in listings for tool in listing.tools]
        for name in self._disable if all(listing.tools for listing in listings) else ():
            if not any(is_mcp_tool_excluded((name,), tool) for tool in names):
                hint = f" Did you mean {near}?" if (near := find_nearest_name(name, names)) else ""
                told = f"[tools] disable: no server lists a tool {render_value(name)}, so nothing was disabled.{hint}"
                self._tell("UNKNOWN_TOOL", told)

    def _why_dropped(self, registry: ToolRegistry, name: str) -> str:
        tool = registry.get(name)
        return f"the server {tool.spec.server} does not list it any more" if tool is not None else ""

    def _tell(self, code: str, text: str) -> None:
        if text not in self._told and len(self._told) < _MAX_SESSION_WARNINGS:
            self._told.add(text)
            self._untold.append((code, text))


def _revision(source: ToolSource) -> int | None:
    try:
        return source.revision
    except Exception:
        return None  # it is asked again, and says then what is wrong with it


def _fact(server: str, listed: ForeignTool) -> ForeignFact:
    return ForeignFact(server=server, tool=listed.name, read_only=listed.read_only)
