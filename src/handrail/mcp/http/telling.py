"""What a client is told while its request is on its way: how far it is, and what should be known."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from handrail.mcp.caller import Level
from handrail.mcp.news import ServerNotification

_MAX_QUEUED_NOTIFICATIONS = 256
"""So much is kept for a client that reads slowly; the rest of it is not told."""

Context = ServerRequestContext[Any, Any]


@asynccontextmanager
async def open_notifications(
    context: Context, least: Level | None
) -> AsyncGenerator[Callable[[ServerNotification], None]]:
    """How any thread tells the client something about its request; all of it is sent when the block ends."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[ServerNotification | None](_MAX_QUEUED_NOTIFICATIONS)

    def add(news: ServerNotification) -> None:
        if not queue.full():
            queue.put_nowait(news)

    sender = asyncio.ensure_future(_send_all(context, queue, least))
    try:
        yield lambda news: loop.call_soon_threadsafe(add, news) and None
        await queue.put(None)
        await sender
    finally:
        sender.cancel()


async def _send_all(context: Context, queue: asyncio.Queue[ServerNotification | None], least: Level | None) -> None:
    count = 0
    while (news := await queue.get()) is not None:
        if news.progress:
            count += 1
            await context.session.report_progress(count, message=news.text)
        if least is not None and news.reaches(least):
            await send_log(context, news)


async def send_log(context: Context, news: ServerNotification) -> None:
    """Tells something that should be known, whatever the level."""
    params = types.LoggingMessageNotificationParams(level=news.level, logger="handrail", data=news.data)
    message = types.LoggingMessageNotification(params=params)
    await context.session.send_notification(message, related_request_id=context.request_id)
