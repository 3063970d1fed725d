"""Takes sources over, so that a session has them and ends them; what is none is refused."""

import threading
import time
from contextlib import suppress

from handrail.protocol.error import UsageError
from handrail.protocol.wording import shown
from handrail.runtime.sources import ToolSource

_METHODS = ("listed", "call", "problems", "close")
_PATIENCE = 15.0
"""Seconds that all of them have to end."""


def refuse_unfit(sources: tuple[ToolSource, ...]) -> None:
    """UsageError where a source is none, has no name, or that of another one."""
    for source in sources:
        if missing := _missing(source):
            raise UsageError(
                f"{shown(source)} is no source of tools: it has no {missing}. sources takes a list of objects with the"
                " methods of handrail.runtime.sources.ToolSource"
            )
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


def _missing(source: object) -> str:
    """What of a source it does not have. A property that fails is there: what it fails of is told when it is used."""
    kind = type(source)
    if isinstance(source, type) or not (hasattr(kind, "server") or "server" in getattr(source, "__dict__", {})):
        return "server"
    return next((f"{name}()" for name in _METHODS if not callable(getattr(source, name, None))), "")


def _close(source: ToolSource) -> None:
    with suppress(Exception):
        source.close()
