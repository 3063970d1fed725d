"""How a server stands, for whichever thread asks."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from handrail.runtime.foreign.source import ForeignTool

if TYPE_CHECKING:
    from handrail.mcp.client.listed_tools import ToolListing

Phase = Literal["idle", "starting", "up", "down", "off"]
"""`down`: it ended, and is started again after a pause. `off`: it is not started again."""


class ServerState:
    """Changed by the event loop, read by everybody."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.phase: Phase = "idle"
        self.reason = ""
        """Why it is not up, in words."""
        self.revision = 0
        self.tools: tuple[ForeignTool, ...] = ()
        self.remarks: tuple[str, ...] = ()
        """What is wrong with what it lists."""
        self._mark = b"[]"

    def set_phase(self, phase: Phase, reason: str = "") -> None:
        """It stands so from now on. What one that is down has listed still stands: it may be back in a moment."""
        with self._changed:
            self.phase, self.reason = phase, reason
            if phase == "off":
                self._list((), (), b"[]")
            self._changed.notify_all()

    def set_listing(self, listing: "ToolListing") -> None:
        """It lists this; another revision, where that is another list."""
        mark = listing.mark
        with self._changed:
            self._list(listing.tools, listing.problems, mark)

    def wait(self, settled: Callable[[Phase], bool], seconds: float) -> Phase:
        """Waits until it stands so, at most as long; how it stands then."""
        until = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: settled(self.phase), max(0.0, until - time.monotonic()))
            return self.phase

    def _list(self, tools: tuple[ForeignTool, ...], remarks: tuple[str, ...], mark: bytes) -> None:
        self.tools, self.remarks = tools, remarks
        if mark != self._mark:
            self._mark = mark
            self.revision += 1
