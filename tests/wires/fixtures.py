"""The wires as fixtures. What a test asked wrongly by their rules fails it."""

from collections.abc import Iterator

import pytest
from tests.wires.anthropic_wire import AnthropicWire
from tests.wires.gemini_wire import GeminiWire
from tests.wires.openai_wire import OpenAIWire
from tests.wires.server import WireServer


def _served(wire: WireServer) -> Iterator[WireServer]:
    yield wire
    wire.close()
    assert wire.problems == []


@pytest.fixture
def openai_wire() -> Iterator[WireServer]:
    """A server that speaks OpenAI's wire: `says`, `refuses`, `sends`, `received`, `environment`, `model`."""
    yield from _served(OpenAIWire())


@pytest.fixture
def anthropic_wire() -> Iterator[WireServer]:
    """The same for Anthropic's."""
    yield from _served(AnthropicWire())


@pytest.fixture
def gemini_wire() -> Iterator[WireServer]:
    """The same for Gemini's."""
    yield from _served(GeminiWire())


@pytest.fixture(params=[OpenAIWire, AnthropicWire], ids=["openai", "anthropic"])
def wire(request: pytest.FixtureRequest) -> Iterator[WireServer]:
    """Each of them in turn."""
    yield from _served(request.param())
