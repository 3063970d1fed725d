"""A model behind a wire. Its provider's package is imported when the first question is put."""

import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from handrail.models.connection import ModelConnection, watch_responses
from handrail.models.loading import load
from handrail.models.model import ModelError, ModelRequest, StreamPiece
from handrail.models.pictures import drop_pictures, has_pictures
from handrail.models.provider import Endpoint
from handrail.models.receiving import PieceBuilder, from_wire
from handrail.models.sending import to_parameters, to_wire

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from pydantic_ai.messages import ModelResponse


class ProviderModel:
    """A model of a provider. Many sessions may share one."""

    def __init__(self, place: Endpoint, window: int | None = None) -> None:
        self._place, self._window = place, window
        self._sees = True
        self._reached = False
        """Whether anything ever came from there."""
        self._opening = threading.Lock()
        self._known: int | None = None
        # Connections belong to the event loop that they are used in, and hosts may have several.
        self._open: WeakKeyDictionary[AbstractEventLoop, ModelConnection] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        """Provider and model."""
        return self._place.name

    @property
    def window(self) -> int:
        """What was set, else what is known of the model once its package is there, else what is usual."""
        return self._window or self._known or self._place.provider.window

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        """The answer, piece by piece. Whoever stops listening ends the question: the connection is closed."""
        connection = await self._connected()
        request = request if self._sees else drop_pictures(request)
        transcript, offer = to_wire(request, self._place.provider.name, connection), to_parameters(request)
        settings: Any = self._settings(connection, request)
        pieces, whole, responses = PieceBuilder(), None, watch_responses()
        try:
            async with connection.model.request_stream(transcript, settings, offer) as answer:
                async for event in answer:
                    self._reached = True
                    for piece in pieces.build(event):
                        yield piece
                whole = answer.get()
        except Exception as error:  # whatever a server sends and its package stumbles over is the server's failure
            # The cause is left out: it holds the whole question.
            raise self._without_waiting(error) or self._explain(error, request) from None
        finally:
            for response in responses:
                await response.aclose()
        for piece in pieces.rest():
            yield piece
        if not _is_whole(whole):
            raise self._broken_off()
        yield from_wire(whole, self._place.provider.name, self._cost(whole))

    async def close(self) -> None:
        """Closes what this event loop still has open. A later question opens it again."""
        import asyncio  # noqa: PLC0415

        if opened := self._open.pop(asyncio.get_running_loop(), None):
            await opened.client.aclose()

    def _without_waiting(self, error: Exception) -> ModelError | None:
        """What to say of a host that never answered; None where there was one, or this is about something else."""
        from handrail.models.failing import build_unreachable_error, is_unreachable  # noqa: PLC0415

        return build_unreachable_error(error, self._place) if not self._reached and is_unreachable(error) else None

    def _explain(self, error: Exception, request: ModelRequest) -> ModelError:
        from handrail.models import failing  # noqa: PLC0415

        if (untaken := failing.find_rejection_error(error, self._place)) is not None:
            return untaken
        if has_pictures(request) and failing.is_picture_refusal(error):
            self._sees = False
            return failing.build_no_pictures_error(self._place)
        return failing.to_model_error(error, self._place, request)

    def _broken_off(self) -> ModelError:
        from handrail.models.failing import build_interrupted_error  # noqa: PLC0415

        return build_interrupted_error(self._place)

    async def _connected(self) -> ModelConnection:
        import asyncio  # noqa: PLC0415

        loop = asyncio.get_running_loop()
        return self._open.get(loop) or await asyncio.to_thread(self._connect, loop)

    def _connect(self, loop: "AbstractEventLoop") -> ModelConnection:
        with self._opening:
            if loop not in self._open:
                load(self._place.provider)
                self._open[loop] = self._place.provider.connect(self._place)
                self._known = self._open[loop].window
            return self._open[loop]

    def _settings(self, connection: ModelConnection, request: ModelRequest) -> dict[str, Any]:
        most = {} if request.most_tokens is None else {"max_tokens": request.most_tokens}
        return {**connection.settings, **most}

    def _cost(self, response: "ModelResponse") -> float | None:
        from handrail.models.pricing import compute_cost  # noqa: PLC0415

        if not (self._place.provider.priced or self._place.usual) or self._place.provider.local:
            return None
        return compute_cost(response.usage, self._place.provider.name, self._place.model)


def _is_whole(response: "ModelResponse") -> bool:
    """Whether the provider said why it ended."""
    return response.finish_reason is not None or "finish_reason" in (response.provider_details or {})
