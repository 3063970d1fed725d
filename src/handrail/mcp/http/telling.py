"""What a client is told while its call runs: how far it is, and what should be known."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from threading import get_ident
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from handrail.mcp.http.news import Level, News, news_of
from handrail.protocol.event import Event
from handrail.rail import Handrail

_WAITING = 256
"""So much is kept for a client that reads slowly; the rest of it is not told."""

Tell = Callable[[News], None]


@asynccontextmanager
async def telling(context: ServerRequestContext[Any, Any], least: Level | None) -> AsyncGenerator[Tell]:
    """How any thread tells the client something about its request; all of it is sent when the block ends."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[News | None](_WAITING)

    def add(news: News) -> None:
        if not queue.full():
            queue.put_nowait(news)

    sender = asyncio.ensure_future(_send_all(context, queue, least))
    try:
        yield lambda news: loop.call_soon_threadsafe(add, news) and None
        await queue.put(None)
        await sender
    finally:
        sender.cancel()


async def _send_all(
    context: ServerRequestContext[Any, Any], queue: asyncio.Queue[News | None], least: Level | None
) -> None:
    count = 0
    while (news := await queue.get()) is not None:
        if news.progress:
            count += 1
            await context.session.report_progress(count, message=news.text)
        if least is not None and news.reaches(least):
            params = types.LoggingMessageNotificationParams(level=news.level, logger="handrail", data=news.text)
            message = types.LoggingMessageNotification(params=params)
            await context.session.send_notification(message, related_request_id=context.request_id)


def listening(rail: Handrail, call_id: str, tell: Tell) -> Callable[[], None]:
    """Tells what happens to a call, from the thread that runs it on; returns how to stop that."""
    thread = get_ident()

    def hear(event: Event) -> None:
        about = getattr(event, "tool_call_id", None)
        own = about == call_id or (about is None and get_ident() == thread)
        if own and (news := news_of(event)) is not None:
            tell(news)

    return rail.subscribe(hear)
