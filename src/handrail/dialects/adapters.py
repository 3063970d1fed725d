"""The event adapters by the name of their dialect."""

from collections.abc import Callable
from typing import Any, Protocol

from handrail.dialects.deepchat_events import DeepChatEvents
from handrail.dialects.devminds_events import DevMindsEvents
from handrail.dialects.onething_events import OneThingEvents
from handrail.protocol.events import Event


class EventAdapter(Protocol):
    """Renders the events of one session, in their order. It has state."""

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """The messages for an event: mostly one, sometimes none."""
        ...


ADAPTERS: dict[str, Callable[[], EventAdapter]] = {
    "deepchat": DeepChatEvents,
    "devminds": DevMindsEvents,
    "onething": OneThingEvents,
}
"""By the name of the dialect. Each session needs a new adapter."""
