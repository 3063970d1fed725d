"""The foreign tools that a session offers, as its servers list them."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from itertools import zip_longest
from typing import NamedTuple

from handrail.policy.config import MCP_PREFIX, TrustedServer, is_mcp_tool_excluded
from handrail.policy.decide import is_read_only_tool
from handrail.protocol.decisions import ForeignFact
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import PERMISSIONS
from handrail.protocol.text import clip_text, find_similar, render_value
from handrail.protocol.tool_spec import OWN_SERVER, ToolSpec
from handrail.protocol.wire import encode
from handrail.runtime.foreign.call import build_foreign_spec, build_foreign_tool
from handrail.runtime.foreign.pins import PinStore, compute_fingerprint, to_description
from handrail.runtime.foreign.source import ForeignTool, ToolSource, find_tool_problem, split_tool_name
from handrail.runtime.registry import ToolRegistry
from handrail.tools.tool import Tool

Warn = Callable[[str, str], None]
"""Warns a person. Gets a code or rule, and a text."""
_MAX_OFFERED_TOOLS = 100
"""Foreign tools of a session. The strictest providers accept 128 tools, the built-in ones included."""
_MAX_SPEC_CHARACTERS = 400_000
"""Characters of the descriptions and schemas of foreign tools: about half of what models accept."""
_MAX_LISTING_WARNINGS = 20
"""Tools of one listing that get a warning each."""
_MAX_SESSION_WARNINGS = 500
_CLOSE_SECONDS = 15.0
_METHODS = ("listed", "call", "problems", "close")


class _Listing(NamedTuple):
    revision: int | None
    tools: tuple[Tool, ...]
    listed: dict[str, ForeignTool]
    """By the names that the server uses."""


class ForeignCatalog:
    """The foreign tools of all sources of a session. Any thread may use it."""

    def __init__(
        self,
        sources: tuple[ToolSource, ...],
        pins: PinStore,
        trusted: tuple[TrustedServer, ...],
        warn: Warn,
        *disable: str,
    ) -> None:
        self._sources = {source.server: source for source in sources}
        self._disable = tuple(name for name in disable if name.casefold().startswith(MCP_PREFIX))
        self._pins, self._trusted, self._warn = pins, trusted, warn
        self._lock = threading.Lock()
        self._listings: dict[str, _Listing] = {}
        self._warned: set[str] = set()
        self._pending_warnings: list[tuple[str, str]] = []
        self._absent: dict[str, str] = {}
        """Names that are not offered, each with the reason."""
        self._closed = False

    def refresh(self, renew: Callable[[], None]) -> None:
        """Lists the tools of sources whose revision changed. Then calls `renew`, which takes them from
        `extend_registry`. Other threads wait meanwhile, so that none uses an old list."""
        with self._lock:
            if not self._closed and self._list_changed():
                renew()
            pending, self._pending_warnings = self._pending_warnings, []
        for code, text in pending:  # without the lock: a listener may ask for the tools
            self._warn(code, text)

    def extend_registry(self, registry: ToolRegistry, is_disabled: Callable[[str], bool]) -> ToolRegistry:
        names = [tool.spec.name for tool in self._list_tools()]
        for name in self._disable if all(listing.tools for listing in self._listings.values()) else ():
            if not any(is_mcp_tool_excluded((name,), tool) for tool in names):
                hint = f" Did you mean {near}?" if (near := find_similar(name.lower(), names, 0.75)) else ""
                text = f"[tools] disable: no server lists a tool {render_value(name)}, so nothing was disabled.{hint}"
                self._add_warning("UNKNOWN_TOOL", text)
        return registry.with_foreign(self._select_fitting(self._select_unique(registry), is_disabled))

    def why_gone(self, name: str) -> str:
        """The reason why there is no tool of this name, or an empty text."""
        if name in self._absent:
            return self._absent[name]
        server = (split_tool_name(name) or (None,))[0]
        source = self._sources.get(server) if server is not None else None
        if source is None:
            return ""
        if any(tool.spec.name == name for tool in self._list_tools()):
            return "it is off"
        with suppress(Exception):
            if problems := source.problems():
                return f"{server}: {clip_text('; '.join(problems), 300)}"
        return f"the server {server} lists no such tool"

    def approve(self, spec: ToolSpec) -> None:
        """Pins a tool, because a person approved it as this spec describes it."""
        listing, foreign = self._listings.get(spec.server), spec.foreign
        if listing is None or foreign is None or (listed := listing.listed.get(foreign.name)) is None:
            return
        description = to_description(listed)
        if compute_fingerprint(description) == foreign.fingerprint:  # it may have changed since the approval
            self._pins.approve(spec.server, description)

    def close(self) -> None:
        self._closed = True
        close_sources(tuple(self._sources.values()))

    def _list_tools(self) -> list[Tool]:
        return [tool for listing in self._listings.values() for tool in listing.tools]

    def _list_changed(self) -> bool:
        """Lists the tools of sources whose revision changed. Returns whether there are any."""
        changed = False
        for server, source in self._sources.items():
            revision = _read_revision(source)
            before = self._listings.get(server)
            if before is None or revision is None or before.revision != revision:
                self._listings[server] = self._build_listing(source, revision)
                changed = True
        return changed

    def _build_listing(self, source: ToolSource, revision: int | None) -> _Listing:
        server = source.server
        listed = self._select_valid(server, self._call_listed(source))
        observation = self._pins.observe(server, [to_description(tool) for tool in listed])
        for name, parts in observation.changed.items():
            text = f"{server} describes its tool {render_value(name)} otherwise than before ({parts})"
            self._add_warning("tool.changed", f"{text}. The next call of it asks.")
        if observation.not_stored:
            text = f"{server} has listed too many different tools, so its new tools are not offered"
            self._add_warning("LIMIT_EXCEEDED", f"{text}. To start over, remove {self._pins.path(server)}.")
            listed = [tool for tool in listed if tool.name not in observation.not_stored]
        tools = tuple(
            build_foreign_tool(source, tool, self._pins, read_only=_is_read_only(server, tool, self._trusted))
            for tool in listed
        )
        return _Listing(revision, tools, {tool.name: tool for tool in listed})

    def _call_listed(self, source: ToolSource) -> tuple[object, ...]:
        try:
            return tuple(source.listed())
        except Exception as error:  # a source can raise anything
            cause = clip_text(f"{type(error).__name__}: {error}", 200)
            text = f"The tools of {source.server} cannot be listed ({cause}). None is offered."
            self._add_warning("UNAVAILABLE", text)
            return ()

    def _select_valid(self, server: str, listed: tuple[object, ...]) -> list[ForeignTool]:
        if len(listed) > ForeignTool.MAX_LISTED:
            most = f"those after the first {ForeignTool.MAX_LISTED} are not offered"
            self._add_warning("LIMIT_EXCEEDED", f"{server} lists {len(listed):,} tools; {most}.")
        valid: dict[str, ForeignTool] = {}
        refused: list[tuple[object, str]] = []
        for tool in listed[: ForeignTool.MAX_LISTED]:
            problem = find_tool_problem(tool)
            if not isinstance(tool, ForeignTool) or problem:
                refused.append((getattr(tool, "name", None), problem))
            elif valid.setdefault(tool.name, tool) != tool:
                refused.append((tool.name, "it is listed twice with different descriptions"))
        for name, problem in refused[:_MAX_LISTING_WARNINGS]:
            text = f"A tool of {server} is not offered: {render_value(name)}: {problem}."
            self._add_warning("INVALID_ARGUMENT", text)
        refused_names = [name for name, _ in refused]
        return [tool for tool in valid.values() if tool.name not in refused_names]

    def _select_unique(self, registry: ToolRegistry) -> list[Tool]:
        tools = self._list_tools()
        names = Counter((*registry.other_names, *(tool.spec.name for tool in tools)))
        self._absent = {}
        for tool in tools:
            if names[name := tool.spec.name] > 1:
                self._absent[name] = "another tool has the same name"
                text = f"{tool.spec.label} is not offered: another tool has the name {name}, too."
                self._add_warning("CONFLICT", text)
        for name in registry.names:
            if name.startswith(MCP_PREFIX) and name not in names and (gone := registry.get(name)) is not None:
                self._absent[name] = f"the server {gone.spec.server} no longer lists it"
        return [tool for tool in tools if tool.spec.name not in self._absent]

    def _select_fitting(self, tools: list[Tool], is_disabled: Callable[[str], bool]) -> list[Tool]:
        """The tools that there is room for, and the disabled ones, which need none."""
        wanted = [tool for tool in tools if not is_disabled(tool.spec.name)]
        fitting = _select_fitting_names(tool.spec for tool in wanted)
        left_out = [tool for tool in wanted if tool.spec.name not in fitting]
        self._absent |= {tool.spec.name: "there are too many tools of other servers" for tool in left_out}
        for server, count in Counter(tool.spec.server for tool in left_out).items():
            self._add_warning(
                "LIMIT_EXCEEDED",
                f"{count} of the tools of {server} are not offered: other servers' tools may be {_MAX_OFFERED_TOOLS},"
                f" and {_MAX_SPEC_CHARACTERS:,} characters, in all. [tools] disable removes tools"
                f' ("{MCP_PREFIX}{server}", "{MCP_PREFIX}{server}__get_*").',
            )
        return [tool for tool in tools if tool.spec.name not in self._absent]

    def _add_warning(self, code: str, text: str) -> None:
        if text not in self._warned and len(self._warned) < _MAX_SESSION_WARNINGS:
            self._warned.add(text)
            self._pending_warnings.append((code, text))


def list_foreign_specs(
    sources: Iterable[ToolSource], trusted: tuple[TrustedServer, ...], disable: Collection[str] = ()
) -> list[ToolSpec]:
    """The foreign tools that a session would offer. The servers are started for that."""
    specs = [
        build_foreign_spec(
            source.server, tool, read_only=_is_read_only(source.server, tool, trusted), reach=source.reach
        )
        for source in sources
        for tool in source.listed()
        if not find_tool_problem(tool)
    ]
    specs = [spec for spec in specs if not is_mcp_tool_excluded(disable, spec.name)]
    fitting = _select_fitting_names(specs)
    return [spec for spec in specs if spec.name in fitting]


def check_sources(sources: tuple[ToolSource, ...]) -> None:
    """UsageError if an object is no source, or its name is invalid or taken."""
    for source in sources:
        if missing := _find_missing_member(source):
            raise UsageError(
                f"{render_value(source)} is not a source of tools: it has no {missing}. sources takes a list of objects"
                " with the members of handrail.ToolSource"
            )
    names = [source.server for source in sources]
    for name in names:
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"a source has the name {render_value(name)}; a server is named by letters, digits, _ and -"
            raise UsageError(text)
        if name.casefold() == OWN_SERVER:
            text = f"a source is called {render_value(name)}, as handrail itself: its tools would be shown as ours"
            raise UsageError(text)
        if names.count(name) > 1:
            raise UsageError(f"two sources are called {render_value(name)}; calls could not tell them apart")
    for source in sources:
        if unknown := [permission for permission in source.reach if permission not in PERMISSIONS]:
            text = f"the source {source.server} has the reach {render_value(unknown[0])}, which is not a permission"
            raise UsageError(f"{text}; there are {', '.join(PERMISSIONS)}")


def close_sources(sources: tuple[ToolSource, ...]) -> None:
    """Ends all sources in parallel. One that does not end in time is abandoned."""
    threads = [threading.Thread(target=_close, args=(source,), daemon=True) for source in sources]
    for thread, source in zip(threads, sources, strict=True):
        try:
            thread.start()
        except RuntimeError:  # no threads are available, for instance when the program ends
            _close(source)
    deadline = time.monotonic() + _CLOSE_SECONDS
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, deadline - time.monotonic()))


def _close(source: ToolSource) -> None:
    with suppress(Exception):
        source.close()


def _read_revision(source: ToolSource) -> int | None:
    try:
        return source.revision
    except Exception:
        return None  # then it is listed again, which reports the problem


def _is_read_only(server: str, tool: ForeignTool, trusted: tuple[TrustedServer, ...]) -> bool:
    return is_read_only_tool(ForeignFact(server=server, tool=tool.name, read_only=tool.read_only), trusted)


def _select_fitting_names(specs: Iterable[ToolSpec]) -> set[str]:
    """The names of the tools that fit into a request. Servers take turns, so that none uses up all room."""
    by_server: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        by_server.setdefault(spec.server, []).append(spec)
    names: set[str] = set()
    room = _MAX_SPEC_CHARACTERS
    for spec in (spec for turn in zip_longest(*by_server.values()) for spec in turn if spec is not None):
        size = len(spec.description) + (len(encode(spec.foreign.input_schema)) if spec.foreign is not None else 0)
        if len(names) < _MAX_OFFERED_TOOLS and size <= room:
            room -= size
            names.add(spec.name)
    return names


def _find_missing_member(source: object) -> str:
    """The name of a member that a source lacks. A property that raises is there."""
    if isinstance(source, type) or not _has_member(source, "server"):
        return "server"
    missing = [f"{name}()" for name in _METHODS if not callable(getattr(source, name, None))]
    return missing[0] if missing else "" if _has_member(source, "reach") else "reach"


def _has_member(source: object, name: str) -> bool:
    return hasattr(type(source), name) or name in getattr(source, "__dict__", {})
