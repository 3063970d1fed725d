"""Runs requests on a model of a provider."""

import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from handrail.models.base import ModelError, ModelRequest, StreamPiece
from handrail.models.providers import Endpoint, ModelConnection, load_provider

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage


class ProviderModel:
    """A model of a provider. Many sessions may share it. The first request imports the provider's package."""

    def __init__(self, place: Endpoint, window: int | None = None) -> None:
        self._place, self._window = place, window
        self._takes_pictures = True
        self._was_reached = False
        self._connecting = threading.Lock()
        self._known_window: int | None = None
        # A connection belongs to one event loop, and a program may have several.
        self._connections: WeakKeyDictionary[AbstractEventLoop, ModelConnection] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        return self._place.name

    @property
    def window(self) -> int:
        """The configured window, the model's own, or the provider's usual one."""
        return self._window or self._known_window or self._place.provider.window

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        """Stream the response. Closing the iterator closes the connection of the request."""
        connection = await self._get_connection()
        from handrail.models import errors, http, messages  # noqa: PLC0415  need the provider's package

        request = request if self._takes_pictures else messages.drop_pictures(request)
        transcript = messages.to_wire(request, self._place.provider.name, connection)
        parameters = messages.to_parameters(request)
        settings: Any = {**connection.settings}
        if request.most_tokens is not None:
            settings["max_tokens"] = request.most_tokens
        pieces, whole, responses = messages.PieceBuilder(), None, http.watch_responses()
        try:
            async with connection.model.request_stream(transcript, settings, parameters) as answer:
                async for event in answer:
                    self._was_reached = True
                    for piece in pieces.build(event):
                        yield piece
                whole = answer.get()
        except Exception as error:  # a package may raise anything about the data of a server
            raise self._to_model_error(error, request) from None  # the cause holds the whole request
        finally:
            for response in responses:
                await response.aclose()
        for piece in pieces.rest():
            yield piece
        if not _is_complete(whole):
            raise errors.build_interrupted_error(self._place)
        yield messages.from_wire(whole, self._place.provider.name, self._compute_cost(whole.usage))

    async def close(self) -> None:
        """Close the connections of this event loop."""
        import asyncio  # noqa: PLC0415

        if connection := self._connections.pop(asyncio.get_running_loop(), None):
            await connection.client.aclose()

    def _to_model_error(self, error: Exception, request: ModelRequest) -> ModelError:
        from handrail.models import errors, messages  # noqa: PLC0415  need the provider's package

        if not self._was_reached and errors.is_unreachable(error):
            return errors.build_unreachable_error(error, self._place)
        if (rejection := errors.find_rejection_error(error, self._place)) is not None:
            return rejection
        if messages.has_pictures(request) and errors.is_picture_refusal(error):
            self._takes_pictures = False
            return errors.build_no_pictures_error(self._place)
        return errors.to_model_error(error, self._place, request)

    async def _get_connection(self) -> ModelConnection:
        import asyncio  # noqa: PLC0415  whoever only finds a model needs none

        loop = asyncio.get_running_loop()
        return self._connections.get(loop) or await asyncio.to_thread(self._connect, loop)

    def _connect(self, loop: "AbstractEventLoop") -> ModelConnection:
        with self._connecting:
            if loop not in self._connections:
                load_provider(self._place.provider)
                self._connections[loop] = self._place.provider.connect(self._place)
                self._known_window = self._connections[loop].window
            return self._connections[loop]

    def _compute_cost(self, usage: "RequestUsage") -> float | None:
        provider = self._place.provider
        if provider.local or not (provider.priced or self._place.usual):
            return None
        return compute_cost(usage, provider.name, self._place.model)


def compute_cost(usage: "RequestUsage", provider: str, model: str) -> float | None:
    """US dollars by the price list of genai-prices, which needs no network. None if the price is unknown."""
    from genai_prices import calc_price  # noqa: PLC0415

    try:
        return float(calc_price(usage, model, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def _is_complete(response: "ModelResponse") -> bool:
    """Whether the provider gave a finish reason."""
    return response.finish_reason is not None or "finish_reason" in (response.provider_details or {})
