"""Opens an HTTP client that limits the responses of a provider.

httpx2 is optional, so only code that connects imports this module.
"""

from collections.abc import AsyncIterator
from contextvars import ContextVar
from urllib.parse import urlsplit

from httpx2 import AsyncByteStream, AsyncClient, Limits, Response, Timeout

_MAX_RESPONSE_BYTES = 128 * 1024 * 1024
"""Three times the longest responses, streamed token by token."""
_MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_ERROR_BYTES = 1024 * 1024
_LOOPBACK = {"localhost", "127.0.0.1", "::1", "0.0.0.0"}  # noqa: S104 (looked up, never bound)
_watched: ContextVar[list[Response] | None] = ContextVar("watched", default=None)


class RejectedResponseError(Exception):
    """A response that is not read. Its message follows the name of the server."""


class OversizedResponseError(RejectedResponseError):
    def __init__(self) -> None:
        super().__init__("sent too much data, or sent it compressed")


class RedirectResponseError(RejectedResponseError):
    def __init__(self) -> None:
        super().__init__("redirects to another address; handrail does not send the key there. Set the final address")


def open_client(address: str, *, connect: float, silence: float) -> AsyncClient:
    """A client for one address. It follows no redirect, because the key would go along.

    `connect` and `silence` are the seconds to wait for a connection and for the next bytes.
    """
    parts = urlsplit(address)
    return AsyncClient(
        # Reading all certificates takes 0.1 s. A plain connection needs none.
        verify=parts.scheme == "https",
        timeout=Timeout(connect=connect, read=silence, write=silence, pool=None),
        # Many sessions may share a model. None waits for a free connection.
        limits=Limits(max_connections=None, max_keepalive_connections=20),
        # A proxy of the environment does not lead to a server on this machine.
        trust_env=parts.hostname not in _LOOPBACK,
        follow_redirects=False,
        # The size of a compressed response is unknown before it is unpacked.
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [_handle_response]},
    )


def watch_responses() -> list[Response]:
    """A list that collects the responses of this context from now on. The caller closes them.

    Some packages leave a response open when the caller stops reading."""
    responses: list[Response] = []
    _watched.set(responses)
    return responses


async def _handle_response(response: Response) -> None:
    """Limit a response. A compressed one is rejected, because it may have any size."""
    if (responses := _watched.get()) is not None:
        responses.append(response)
    if response.has_redirect_location:
        raise RedirectResponseError
    if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise OversizedResponseError
    if isinstance(response.stream, AsyncByteStream):
        most = _MAX_RESPONSE_BYTES if response.is_success else _MAX_ERROR_BYTES
        response.stream = _LimitedByteStream(response.stream, most)


class _LimitedByteStream(AsyncByteStream):
    def __init__(self, stream: AsyncByteStream, most: int) -> None:
        self._stream, self._most = stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = line = 0
        async for piece in self._stream:
            total += len(piece)
            end = piece.rfind(b"\n")
            line = line + len(piece) if end < 0 else len(piece) - end - 1
            if total > self._most or line > _MAX_LINE_BYTES:
                raise OversizedResponseError
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
