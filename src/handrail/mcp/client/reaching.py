"""Messages to a server that is reached by streamable HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from handrail.mcp.client.ends import CloseReason
from handrail.mcp.client.pace import BYTE_RATE, RateLimiter
from handrail.mcp.client.streams import MAX_ANSWER_BYTES, AnswerStream, EventStream

_CONNECT_SECONDS = 10.0
_WHO_ARE_YOU = 401
_STREAMS = (8, 1.0)
"""At once, and a second: how often a stream is opened again that the server ends."""
_TEXT = "identity"
"""Nothing packed: a few bytes could be any number then."""


@asynccontextmanager
async def open_http(
    url: str, headers: tuple[tuple[str, str], ...], seconds: float, end: CloseReason
) -> AsyncGenerator[TransportStreams]:
    """The streams that a session works on. Redirects to elsewhere are not followed, which the SDK sees to."""
    times = httpx2.Timeout(_CONNECT_SECONDS, read=max(seconds, _CONNECT_SECONDS) + _CONNECT_SECONDS)
    given = [*headers, ("Accept-Encoding", _TEXT)]
    async with (
        _BoundedHttpClient(headers=given, timeout=times, end=end) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_ANSWER_BYTES) as streams,
    ):
        yield streams


class _BoundedHttpClient(httpx2.AsyncClient):
    """Notices why a server lets nobody in, and takes no endless answer."""

    def __init__(self, *, end: CloseReason, **given: Any) -> None:
        super().__init__(**given)
        self._end = end
        self._streams = RateLimiter(*_STREAMS)
        self._bytes = RateLimiter(*BYTE_RATE)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method == "GET":
            await asyncio.sleep(self._streams.wait(asyncio.get_running_loop().time()))
        response = await super().send(request, **options)
        if response.status_code == _WHO_ARE_YOU:
            self._end.note(
                "it wants to know who asks (401), and OAuth is not supported here: put a token into its headers",
                final=True,
            )
        if response.headers.get("content-encoding", _TEXT) != _TEXT:
            await response.aclose()
            raise httpx2.DecodingError("the answer is packed, which was not asked for", request=request)
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = (EventStream if is_stream else AnswerStream)(response.stream, self._bytes)
        return response
