"""Where calls run: some threads beside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import anyio

Returned = TypeVar("Returned")

AT_ONCE = 32
"""More calls than this wait for their turn, whosever they are."""
_LOOK_AGAIN = 0.05


def _nothing() -> None:
    pass


class Threads:
    """A bounded number of them, for one event loop."""

    def __init__(self, count: int = AT_ONCE) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="handrail-http")

    async def run(self, work: Callable[[], Returned], stop: Callable[[], object] = _nothing) -> Returned:
        """What some work comes to. If nobody waits for it any more it is stopped, and only then left: nothing goes on
        behind a request that is over."""
        future = self._pool.submit(work)
        waited = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waited)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await _ended(future, waited, stop)
            raise

    def close(self) -> None:
        """Waits for what runs; what has not begun never does."""
        self._pool.shutdown(cancel_futures=True)


async def _ended(future: Future[Returned], waited: asyncio.Future[Returned], stop: Callable[[], object]) -> None:
    """Waits for the end, and says that it is wanted until it comes: what was about to begin may not have heard it."""
    if future.cancel():
        return
    while not waited.done():
        stop()
        await asyncio.wait([waited], timeout=_LOOK_AGAIN)
    if not waited.cancelled():
        waited.exception()  # looked at, so that nobody is told that nobody did
