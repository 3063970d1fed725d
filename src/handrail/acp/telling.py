"""Tells an editor what is written into the journal of a session: in order, once, and whoever wrote it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress

from msgspec.structs import replace

from handrail.acp.showing import Update, UpdateBuilder
from handrail.async_api import AsyncHandrail
from handrail.protocol.events import AnyEvent, Event, Reasoning, Text, ToolCallUpdate

Send = Callable[[Update], Awaitable[None]]


class JournalFollower:
    """A listener only says that there is something; what it is is read from the journal. So what another process
    wrote, which answered a request of this session, is told as well, and in its place."""

    def __init__(self, rail: AsyncHandrail, showing: UpdateBuilder, send: Send, after: int) -> None:
        """`after`: the last event that the editor knows."""
        self._rail, self._showing, self._send = rail, showing, send
        self._last = after
        self._more = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        loop = asyncio.get_running_loop()
        self._unsubscribe = rail.subscribe(lambda _: _wake(loop, self._more))
        self._following = loop.create_task(self._follow())

    async def catch_up(self) -> None:
        """Tells what is there by now."""
        async with self._one_at_a_time:
            for event in await self._rail.in_pool(lambda: list(self._rail.events(self._last))):
                self._last = event.seq
                if isinstance(event, Event):
                    for update in await self._showing.build_updates(event, again=False):
                        await self._send(update)

    async def close(self) -> None:
        """Tells nothing any more."""
        self._unsubscribe()
        self._following.cancel()
        await asyncio.wait({self._following})

    async def _follow(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            await self.catch_up()


async def replay_session(rail: AsyncHandrail, showing: UpdateBuilder, send: Send) -> int:
    """Tells all that happened in a session; the number of the last event."""
    stored = await rail.in_pool(lambda: list(rail.events()))
    for event in _joined(one for one in stored if isinstance(one, Event)):
        for update in await showing.build_updates(event, again=True):
            await send(update)
    return stored[-1].seq if stored else 0


def _joined(stored: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """The words of a message in one piece where nothing came between, and not what running calls printed meanwhile."""
    last: AnyEvent | None = None
    for event in stored:
        if isinstance(event, ToolCallUpdate):
            continue
        if isinstance(last, Text | Reasoning) and isinstance(event, type(last)) and event.message_id == last.message_id:
            last = replace(last, text=last.text + event.text)
            continue
        if last is not None:
            yield last
        last = event
    if last is not None:
        yield last


def _wake(loop: asyncio.AbstractEventLoop, more: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop has ended: nobody is told any more
        loop.call_soon_threadsafe(more.set)
