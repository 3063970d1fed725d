"""One call of a server's tool, for the thread that waits for it."""

import time
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYetError
from contextlib import suppress
from typing import TYPE_CHECKING

from handrail.mcp.client.secrets import Secrets
from handrail.mcp.client.words import render_progress_text
from handrail.protocol.errors import StoreError, ToolError
from handrail.tools.tool import Context

if TYPE_CHECKING:
    from mcp_types import CallToolResult, InputRequiredResult

    from handrail.mcp.client.keeping import ServerSupervisor

_POLL_SECONDS = 0.05
"""Seconds within which a cancellation is seen."""
_TELL_PAUSE_SECONDS = 0.25
"""Seconds between two things that live views are told."""


class CallProgress:
    """The last that was said of how it goes on. What was said before it, nobody needs any more."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._latest = ""
        self._told = ""
        self._next = 0.0

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        """As the server says it; called in the event loop."""
        done = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        self._latest = f"{done}: {render_progress_text(message, self._secrets)}" if message else done

    def tell(self, context: Context, logged: str) -> None:
        """Tells live views, now and then, where there is something new."""
        latest, now = self._latest or logged, time.monotonic()
        if latest and latest != self._told and now >= self._next:
            self._told, self._next = latest, now + _TELL_PAUSE_SECONDS
            with suppress(StoreError):  # nobody has to see how it goes on
                context.metadata(output=latest)


def wait_for_result(
    future: "Future[CallToolResult | InputRequiredResult]",
    context: Context,
    progress: CallProgress,
    keeper: "ServerSupervisor",
) -> "CallToolResult | InputRequiredResult":
    """What came of it; ToolError CANCELLED where it was cancelled meanwhile, which the server is told."""
    logged = keeper.heard
    while True:
        try:
            return future.result(_POLL_SECONDS)
        except NotYetError:
            if future.done():
                raise  # its own time limit
        except CancelledError:
            raise ToolError("CANCELLED", "The call was cut off: the session ends.") from None
        if context.cancelled():
            future.cancel()
            raise ToolError("CANCELLED", "The call was cancelled, and the server told so.")
        progress.tell(context, keeper.heard if keeper.heard != logged else "")
