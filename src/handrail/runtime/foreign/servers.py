"""The other servers of a session: what they list is offered, what they change is noticed, and told."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from handrail.policy.configuration import Vouching
from handrail.policy.judging.foreign import only_looks
from handrail.protocol.decision import ForeignFact
from handrail.protocol.error import UsageError
from handrail.protocol.tool import ToolSpec
from handrail.protocol.wording import shown, visible
from handrail.runtime.foreign.accepting import MOST_TOOLS, why_not
from handrail.runtime.foreign.describing import described, fingerprint
from handrail.runtime.foreign.known import Known
from handrail.runtime.foreign.naming import PREFIX, taken_apart
from handrail.runtime.foreign.tools import foreign_tool
from handrail.runtime.registry import Registry
from handrail.runtime.sources import ForeignTool, ToolSource
from handrail.tools.contract import Tool

Warn = Callable[[str, str], None]
"""Tells a person, by a code or rule and a text."""
_MOST_TOLD = 20
"""Tools of one listing that a person is warned about one by one."""
_PATIENCE = 15.0
"""Seconds that all of them have to end."""


class _Listing(NamedTuple):
    revision: int | None
    tools: tuple[Tool, ...]
    listed: dict[str, ForeignTool]
    """By the server's own names."""


class OtherServers:
    """All sources of a session. Any thread may ask."""

    def __init__(
        self, sources: tuple[ToolSource, ...], known: Known, vouched: tuple[Vouching, ...], warn: Warn
    ) -> None:
        self._sources = {source.server: source for source in sources}
        self._known, self._vouched, self._warn = known, vouched, warn
        self._lock = threading.Lock()
        self._listings: dict[str, _Listing] = {}
        self._told: set[str] = set()
        self._untold: list[tuple[str, str]] = []
        self._gone: dict[str, str] = {}
        """Names that were offered, or could have been, and why they are not."""
        self._closed = False

    def look(self, renew: Callable[[], None]) -> None:
        """Asks them what they list, where that may have changed, and has it offered then: `renew` takes it by
        `renewed`. Who comes meanwhile waits, so that nobody goes by what was."""
        with self._lock:
            if not self._closed and self._is_new():
                renew()
            untold, self._untold = self._untold, []
        for code, text in untold:  # who hears of it may ask for the tools
            self._warn(code, text)

    def renewed(self, registry: Registry) -> Registry:
        """The registry with what the servers listed last."""
        return registry.with_foreign(self._offered(registry))

    def why_gone(self, name: str) -> str:
        """Why there is no tool of a name, in words; empty where nothing is known."""
        if name in self._gone:
            return self._gone[name]
        server = (taken_apart(name) or (None,))[0]
        source = self._sources.get(server) if server is not None else None
        if source is None:
            return ""
        with suppress(Exception):
            if problems := source.problems():
                return f"{server}: {visible('; '.join(problems), 300)}"
        return f"the server {server} lists no such tool"

    def approve(self, spec: ToolSpec) -> None:
        """A person said yes to a tool as it is now."""
        listing, foreign = self._listings.get(spec.server), spec.foreign
        if listing is None or foreign is None or (listed := listing.listed.get(foreign.name)) is None:
            return
        told = described(listed)
        if fingerprint(told) == foreign.fingerprint:  # what it became meanwhile, nobody said yes to
            self._known.approve(spec.server, told)

    def close(self) -> None:
        """Ends all of them."""
        self._closed = True
        close_all(tuple(self._sources.values()))

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
        for tool, parts in self._known.meet(server, [described(one) for one in listed]):
            told = f"{server} describes its tool {shown(tool)} otherwise than before ({parts})"
            self._tell("tool.changed", f"{told}. The next call of it asks.")
        tools = tuple(
            foreign_tool(source, one, self._known, looks=only_looks(_fact(server, one), self._vouched))
            for one in listed
        )
        return _Listing(revision, tools, {one.name: one for one in listed})

    def _asked(self, source: ToolSource) -> tuple[object, ...]:
        try:
            return tuple(source.listed())
        except Exception as error:  # whatever it is: the session goes on without it
            what = visible(f"{type(error).__name__}: {error}", 200)
            self._tell("UNAVAILABLE", f"The tools of {source.server} cannot be listed ({what}). None is offered.")
            return ()

    def _sound(self, server: str, listed: tuple[object, ...]) -> list[ForeignTool]:
        """Those that can be offered; a person is told why others are not."""
        if len(listed) > MOST_TOOLS:
            told = f"{server} lists {len(listed):,} tools; those after the first {MOST_TOOLS} are not offered"
            self._tell("LIMIT_EXCEEDED", f"{told}.")
        found: dict[str, ForeignTool] = {}
        refused: list[tuple[object, str]] = []
        for one in listed[:MOST_TOOLS]:
            why = why_not(one)
            if not isinstance(one, ForeignTool) or why:
                refused.append((getattr(one, "name", None), why))
            elif found.setdefault(one.name, one) != one:
                refused.append((one.name, "it is listed twice, each time otherwise"))
        for name, why in refused[:_MOST_TOLD]:
            self._tell("INVALID_ARGUMENT", f"A tool of {server} is not offered: {shown(name)}: {why}.")
        unsound = [name for name, _ in refused]
        return [one for one in found.values() if one.name not in unsound]

    def _offered(self, registry: Registry) -> tuple[Tool, ...]:
        """All of them under their names; of two that would have one name, neither."""
        tools = [tool for listing in self._listings.values() for tool in listing.tools]
        names = [tool.spec.name for tool in tools]
        before = {name for name in registry.names if name.startswith(PREFIX)}
        taken = set(registry.other_names)
        offered: list[Tool] = []
        self._gone = {}
        for tool in tools:
            name = tool.spec.name
            if name in taken or names.count(name) > 1:
                self._gone[name] = "another tool has the same name"
                self._tell("CONFLICT", f"{tool.spec.label} is not offered: another tool has the name {name}, too.")
            else:
                offered.append(tool)
        for name in before - {tool.spec.name for tool in offered}:
            self._gone.setdefault(name, self._why_dropped(registry, name))
        return tuple(offered)

    def _why_dropped(self, registry: Registry, name: str) -> str:
        tool = registry.get(name)
        return f"the server {tool.spec.server} does not list it any more" if tool is not None else ""

    def _tell(self, code: str, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._untold.append((code, text))


def refuse_same_names(sources: tuple[ToolSource, ...]) -> None:
    """UsageError where a source has no name, or that of another one."""
    names = [source.server for source in sources]
    for name in names:
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"a source has the name {shown(name)}; a server is called by letters, digits, _ and -")
        if names.count(name) > 1:
            raise UsageError(f"two sources are called {shown(name)}; calls could not tell them apart")


def close_all(sources: tuple[ToolSource, ...]) -> None:
    """Ends all of them side by side, and waits only so long: one that does not end is left to itself."""
    closing = [threading.Thread(target=_close, args=(source,), daemon=True) for source in sources]
    for thread, source in zip(closing, sources, strict=True):
        try:
            thread.start()
        except RuntimeError:  # none can be had, as when the program ends
            _close(source)
    until = time.monotonic() + _PATIENCE
    for thread in closing:
        if thread.ident is not None:
            thread.join(max(0.0, until - time.monotonic()))


def _close(source: ToolSource) -> None:
    with suppress(Exception):
        source.close()


def _revision(source: ToolSource) -> int | None:
    try:
        return source.revision
    except Exception:
        return None  # it is asked again, and says then what is wrong with it


def _fact(server: str, listed: ForeignTool) -> ForeignFact:
    return ForeignFact(server=server, tool=listed.name, read_only=listed.read_only)
