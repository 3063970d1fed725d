"""The event adapters by the name of their dialect."""

from collections.abc import Callable
from typing import Any, Protocol

from handrail.dialects import deepchat, devminds, onething
from handrail.dialects.table import build_schema
from handrail.protocol.events import Event, decode_event
from handrail.protocol.schema import read_wire_samples
from handrail.protocol.wire import encode


class EventAdapter(Protocol):
    """Renders the events of one session, in their order. It has state."""

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """The messages for an event: mostly one, sometimes none."""
        ...


ADAPTERS: dict[str, Callable[..., EventAdapter]] = {
    "deepchat": deepchat.DeepChatEvents,
    "devminds": devminds.DevMindsEvents,
    "onething": onething.OneThingEvents,
}
"""By the name of the dialect. Each session needs a new adapter. It takes the absolute path of the workspace."""


def build_event_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of a message by the name of its dialect."""
    return {own.DIALECT.name: build_schema(own.EVENTS) for own in (deepchat, devminds, onething)}


def render_samples(name: str) -> list[dict[str, Any]]:
    """The messages for a sample of each kind of event."""
    adapter = ADAPTERS[name]("/workspace")
    events = [decode_event(encode(own)) for kind, own in read_wire_samples().items() if kind.startswith("event.")]
    return [message for event in events for message in adapter.render(event)]
