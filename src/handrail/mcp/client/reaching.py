"""Messages to a server that is reached by streamable HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from handrail.mcp.client.ends import End
from handrail.mcp.client.pace import BYTES, Pace
from handrail.mcp.client.streams import LARGEST_ANSWER, Answer, Events

_CONNECT = 10.0
_WHO_ARE_YOU = 401
_STREAMS = (8, 1.0)
"""At once, and a second: how often a stream is opened again that the server ends."""
_TEXT = "identity"
"""Nothing packed: a few bytes could be any number then."""


@asynccontextmanager
async def reached(
    url: str, headers: tuple[tuple[str, str], ...], seconds: float, end: End
) -> AsyncGenerator[TransportStreams]:
    """The streams that a session works on. Redirects to elsewhere are not followed, which the SDK sees to."""
    times = httpx2.Timeout(_CONNECT, read=max(seconds, _CONNECT) + _CONNECT)
    given = [*headers, ("Accept-Encoding", _TEXT)]
    async with (
        _Client(headers=given, timeout=times, end=end) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST_ANSWER) as streams,
    ):
        yield streams


class _Client(httpx2.AsyncClient):
    """Notices why a server lets nobody in, and takes no endless answer."""

    def __init__(self, *, end: End, **given: Any) -> None:
        super().__init__(**given)
        self._end = end
        self._streams = Pace(*_STREAMS)
        self._bytes = Pace(*BYTES)

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
        response.stream = (Events if is_stream else Answer)(response.stream, self._bytes)
        return response
