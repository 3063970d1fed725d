"""Listens to an answer, and ends the question at once where somebody stops listening."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from handrail.models.model import Model, ModelRequest, StreamPiece


@asynccontextmanager
async def open_stream(model: Model, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamPiece]]:
    """The pieces of the answer. A provider's stream is open until it is closed."""
    stream = model.stream(request)
    try:
        yield stream
    finally:
        if close := getattr(stream, "aclose", None):
            await close()
