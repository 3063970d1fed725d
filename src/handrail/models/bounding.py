"""As much of a response as any answer needs: a server that never ends must not fill the memory.

Only who has a connection imports this."""

from collections.abc import AsyncIterator

from httpx2 import AsyncByteStream, Response

_MAX_ANSWER_BYTES = 128 * 1024 * 1024
"""Bytes of an answer. The longest ones there are, a word at a time, have a third of it."""
_MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_REFUSAL_BYTES = 1024 * 1024


class RejectedResponseError(Exception):
    """A response that is not taken; its words follow the name of whose it is."""


class OversizedResponseError(RejectedResponseError):
    """The server sent more than can be an answer, or sent it packed although nobody asked for that."""

    def __init__(self) -> None:
        super().__init__("sent more than an answer can have, or sent it packed")


class RedirectResponseError(RejectedResponseError):
    """The server wants to be asked at another address. The key would go along."""

    def __init__(self) -> None:
        super().__init__("sends elsewhere, where the key does not follow; set its address to that")


def limit_response(response: Response) -> None:
    """Lets only so much of a response come through. What is packed may be any size, so it is not taken."""
    if response.has_redirect_location:
        raise RedirectResponseError
    if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise OversizedResponseError
    if isinstance(response.stream, AsyncByteStream):
        response.stream = _Bounded(response.stream, _MAX_ANSWER_BYTES if response.is_success else _MAX_REFUSAL_BYTES)


class _Bounded(AsyncByteStream):
    def __init__(self, stream: AsyncByteStream, most: int) -> None:
        self._stream, self._most = stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        came = line = 0
        async for piece in self._stream:
            came += len(piece)
            end = piece.rfind(b"\n")
            line = line + len(piece) if end < 0 else len(piece) - end - 1
            if came > self._most or line > _MAX_LINE_BYTES:
                raise OversizedResponseError
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
