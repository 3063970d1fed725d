"""The event adapters by the name of their dialect."""

from collections.abc import Callable
from typing import Any, Protocol

from handrail.dialects.deepchat_events import DeepChatEvents
from handrail.dialects.devminds_events import DevMindsEvents
from handrail.dialects.onething_events import OneThingEvents
from handrail.protocol.events import Event, decode_event
from handrail.protocol.schema import read_wire_samples
from handrail.protocol.wire import encode


class EventAdapter(Protocol):
    """Renders the events of one session, in their order. It has state."""

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """The messages for an event: mostly one, sometimes none."""
        ...


ADAPTERS: dict[str, Callable[..., EventAdapter]] = {
    "deepchat": DeepChatEvents,
    "devminds": DevMindsEvents,
    "onething": OneThingEvents,
}
"""By the name of the dialect. Each session needs a new adapter. It takes the absolute path of the workspace."""


def render_samples(name: str) -> list[dict[str, Any]]:
    """The messages for a sample of each kind of event."""
    adapter = ADAPTERS[name]("/workspace")
    events = [decode_event(encode(own)) for kind, own in read_wire_samples().items() if kind.startswith("event.")]
    return [message for event in events for message in adapter.render(event)]
