"""Lets a server talk only so fast: it waits then, and nobody else does."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from handrail.mcp.client.ends import CloseReason
from handrail.mcp.client.pace import RateLimiter
from handrail.mcp.client.weighing import limit_message_size

_MESSAGES = (1_000, 500.0)
_REQUESTS = (64, 2.0)
"""At once, and a second: of all messages; and of requests, which a server has little to ask by."""


@asynccontextmanager
async def limit_rate(
    transport: AbstractAsyncContextManager[TransportStreams], end: CloseReason
) -> AsyncGenerator[TransportStreams]:
    """The same transport. What it cannot read is passed over; requests of one who asks too much are, too."""
    async with transport as (source, sink):
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with to_session, from_server, anyio.create_task_group() as tasks:

            async def pass_on() -> None:
                clock = asyncio.get_running_loop().time
                messages, requests = RateLimiter(*_MESSAGES), RateLimiter(*_REQUESTS)
                async with to_session:
                    async for one in source:
                        if (pause := messages.wait(clock())) > 0:
                            await asyncio.sleep(pause)
                        if not isinstance(one, SessionMessage) or _is_too_much(one, requests, clock()):
                            continue
                        if (message := limit_message_size(one)) is not None:
                            await to_session.send(message)
                end.note("it ended the connection", vague=True)

            tasks.start_soon(pass_on)
            try:
                yield from_server, sink
            finally:
                tasks.cancel_scope.cancel()


def _is_too_much(one: SessionMessage, requests: RateLimiter, now: float) -> bool:
    return isinstance(one.message, JSONRPCRequest) and requests.wait(now) > 0
