"""Takes sources over, so that a session has them and ends them; what is none is refused."""

import threading
import time
from contextlib import suppress

from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import PERMISSIONS
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import OWN_SERVER
from handrail.runtime.sources import ToolSource

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
                " members of handrail.runtime.sources.ToolSource"
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
