"""The event stream as other systems spell it: one file a system, and its line in the list."""

from collections.abc import Callable
from typing import Any, Protocol

from handrail.dialects.deepchat import DeepChatEvents
from handrail.dialects.devminds import DevMindsEvents
from handrail.dialects.one_thing import OneThingEvents
from handrail.protocol.events import Event


class EventAdapter(Protocol):
    """Renders the events of one session, in their order. It remembers what later ones need of earlier ones."""

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """What the other system would be told: mostly one message, sometimes none."""
        ...


ADAPTERS: dict[str, Callable[[], EventAdapter]] = {
    "deepchat": DeepChatEvents,
    "devminds": DevMindsEvents,
    "onething": OneThingEvents,
}
"""By the name of the dialect; a new one for each session."""
