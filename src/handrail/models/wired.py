"""A model behind a wire. Its provider's package is imported when the first question is put."""

import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from handrail.models.connection import Connection, watch_responses
from handrail.models.failing import broken_off, explain, wants_no_pictures, without_sight
from handrail.models.loading import load
from handrail.models.model import ModelError, ModelRequest, Piece
from handrail.models.pictures import shows_pictures, without_pictures
from handrail.models.provider import Place
from handrail.models.receiving import Pieces, from_wire
from handrail.models.sending import to_parameters, to_wire

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from pydantic_ai.messages import ModelResponse


class WiredModel:
    """A model of a provider. Many sessions may share one."""

    def __init__(self, place: Place, window: int | None = None) -> None:
        self._place, self._window = place, window
        self._sees = True
        self._opening = threading.Lock()
        self._open: tuple[AbstractEventLoop, Connection] | None = None

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        """Provider and model."""
        return self._place.name

    @property
    def window(self) -> int:
        """What was set, else what is known of the model once its package is there, else what is usual."""
        known = self._open[1].window if self._open else None
        return self._window or known or self._place.provider.window

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        """The answer, piece by piece. Whoever stops listening ends the question: the connection is closed."""
        connection = await self._connected()
        request = request if self._sees else without_pictures(request)
        pieces, whole, responses = Pieces(), None, watch_responses()
        try:
            async with connection.model.request_stream(
                to_wire(request, self._place.provider.name, connection),
                self._settings(connection, request),  # pyright: ignore[reportArgumentType]
                to_parameters(request),
            ) as answer:
                async for event in answer:
                    for piece in pieces.of(event):
                        yield piece
                whole = answer.get()
        except Exception as error:  # whatever a server sends and its package stumbles over is the server's failure
            # The cause is left out: it holds the whole question.
            raise self._explain(error, request) from None
        finally:
            for response in responses:
                await response.aclose()
        for piece in pieces.rest():
            yield piece
        if not _is_whole(whole):
            raise broken_off(self._place)
        yield from_wire(whole, self._place.provider.name, self._cost(whole))

    async def close(self) -> None:
        """Closes what is still open. A later question opens it again."""
        opened, self._open = self._open, None
        if opened is not None:
            await opened[1].client.aclose()

    def _explain(self, error: Exception, request: ModelRequest) -> ModelError:
        if shows_pictures(request) and wants_no_pictures(error, self._place):
            self._sees = False
            return without_sight(self._place)
        return explain(error, self._place)

    async def _connected(self) -> Connection:
        import asyncio  # noqa: PLC0415

        loop = asyncio.get_running_loop()
        if self._open is not None and self._open[0] is loop:
            return self._open[1]
        return await asyncio.to_thread(self._connect, loop)

    def _connect(self, loop: "AbstractEventLoop") -> Connection:
        with self._opening:
            if self._open is None or self._open[0] is not loop:
                load(self._place.provider)
                self._open = loop, self._place.provider.connect(self._place)
            return self._open[1]

    def _settings(self, connection: Connection, request: ModelRequest) -> dict[str, Any]:
        most = {} if request.most_tokens is None else {"max_tokens": request.most_tokens}
        return {**connection.settings, **most}

    def _cost(self, response: "ModelResponse") -> float | None:
        from handrail.models.pricing import price  # noqa: PLC0415

        if not (self._place.provider.priced or self._place.usual) or self._place.provider.local:
            return None
        return price(response.usage, self._place.provider.name, self._place.model)


def _is_whole(response: "ModelResponse") -> bool:
    """Whether the provider said why it ended."""
    return response.finish_reason is not None or "finish_reason" in (response.provider_details or {})
