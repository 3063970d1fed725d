"""Where calls run: threads beside the event loop. Whoever is busy keeps nobody waiting but itself."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import anyio

from handrail.mcp.stdio.workers import Workers

Returned = TypeVar("Returned")

MAX_EFFECT_CALLS, MAX_LOOKING_CALLS = 8, 16
"""Calls of one client at once, with effects and without. Those with effects take turns in a session anyway, and who
waits for a turn must not keep those who only look."""
_MAX_CLERKS = 8
"""For what takes no time: to look whether somebody answered, to open a session, to let go of a call."""
_POLL_SECONDS = 0.05


def _nothing() -> None:
    pass


def _unheard(_: Exception) -> None:
    """Whoever waits for some work hears what became of it."""


class CallThreads:
    """Those of one event loop, and used by its thread alone. They do not keep the process: a tool may never end."""

    def __init__(self) -> None:
        self._clerks = Workers(_unheard, _MAX_CLERKS)
        self._of_clients: dict[tuple[str, bool], Workers] = {}
        self._left = False

    def get_workers(self, client: str, *, does: bool) -> Workers:
        """Where the calls of a client run, with effects or without."""
        most = MAX_EFFECT_CALLS if does else MAX_LOOKING_CALLS
        return self._of_clients.setdefault((client, does), Workers(_unheard, most))

    async def run(
        self, work: Callable[[], Returned], stop: Callable[[], object] = _nothing, workers: Workers | None = None
    ) -> Returned:
        """What some work comes to. If nobody waits for it any more it is stopped, and only then left: nothing goes on
        behind a request that is over."""
        future = Future[Returned]()
        (workers or self._clerks).add(lambda: _do(work, future))
        waited = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waited)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._ended(future, waited, stop)
            raise

    def leave(self) -> None:
        """From here on nobody waits until something has ended: the server ends."""
        self._left = True

    def end(self, seconds: float) -> bool:
        """Ends them; whether all have ended within this time."""
        until = time.monotonic() + seconds
        every = (*self._of_clients.values(), self._clerks)
        ended = [workers.end(max(0.0, until - time.monotonic())) for workers in every]
        return all(ended)

    async def _ended(
        self, future: Future[Returned], waited: asyncio.Future[Returned], stop: Callable[[], object]
    ) -> None:
        """Waits for the end, and says that it is wanted until it comes: what was about to begin may not have heard."""
        if future.cancel():
            return
        while not waited.done() and not self._left:
            stop()
            await asyncio.wait([waited], timeout=_POLL_SECONDS)
        if waited.done() and not waited.cancelled():
            waited.exception()  # looked at, so that nobody is told that nobody did


def _do(work: Callable[[], Returned], future: Future[Returned]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
