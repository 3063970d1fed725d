"""What an editor is shown of the events of a session, the same whether they happen now or are told again."""

from collections.abc import Callable, Sequence
from typing import Any

from acp.helpers import image_block, plan_entry, text_block, update_current_mode, update_plan
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    Cost,
    CurrentModeUpdate,
    PlanEntryStatus,
    SessionInfoUpdate,
    UsageUpdate,
    UserMessageChunk,
)

from handrail.acp.calls import CallUpdates, Card
from handrail.acp.cards import build_session_title
from handrail.acp.wording import build_message_chunk, build_thought_chunk, render_event
from handrail.async_api import AsyncHandrail
from handrail.protocol import events
from handrail.protocol.events import AnyEvent
from handrail.protocol.messages import UserMessage
from handrail.protocol.records import TodoItem
from handrail.protocol.results import Attachment, ToolResult

Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | Card
    | AgentPlanUpdate
    | CurrentModeUpdate
    | SessionInfoUpdate
    | UsageUpdate
)
_STATUS: dict[str, PlanEntryStatus] = {"pending": "pending", "active": "in_progress", "done": "completed"}


class UpdateBuilder:
    """Turns events into updates. It remembers what later events do not say again."""

    def __init__(self, rail: AsyncHandrail, folder: str, window: Callable[[], int | None]) -> None:
        """`folder`: the workspace as the editor calls it. `window`: how many tokens the model takes, if known."""
        self._rail, self._window = rail, window
        self._calls = CallUpdates(rail, folder)
        self._cost: float | None = None
        self._titled = False
        self._pictured: dict[str, tuple[Attachment, ...]] | None = None
        """The pictures of the person, by their messages, where somebody asked for them."""

    async def build_updates(self, event: AnyEvent, *, again: bool) -> Sequence[Update]:
        """The updates for an event. `again`: it is an older one, and the editor does not know what the person said."""
        match event:
            case events.ToolCallStart() | events.ToolCallRunning() | events.ToolCallUpdate():
                return self._calls.render_progress(event)
            case events.ToolCallEnd() | events.ToolCallError():
                return await self._ended(event.result)
            case events.User():
                return [*self._named(event), *(await self._said(event) if again else ())]
            case events.Usage():
                return self._used(event)
            case _:
                return _spoken(event, again=again)

    async def plan(self) -> list[Update]:
        """What the model has to do, where it said so."""
        return [update_plan(map(_entry, items))] if (items := await self._rail.todo()) else []

    async def _ended(self, result: ToolResult[Any]) -> Sequence[Update]:
        return await self.plan() if result.name == "todo" and result.ok else await self._calls.render_end(result)

    def _named(self, event: events.User) -> list[Update]:
        """A session is called by what the person said first."""
        if self._titled or not event.text.strip():
            return []
        self._titled = True
        title, at = build_session_title(event.text), event.time.isoformat()
        return [SessionInfoUpdate(session_update="session_info_update", title=title, updated_at=at)]

    async def _said(self, event: events.User) -> list[Update]:
        pictures = await self._rail.in_pool(lambda: self._pictures(event))
        shown = [text_block(event.text), *(image_block(one.content or "", one.mime) for one in pictures)]
        return [
            UserMessageChunk(session_update="user_message_chunk", content=one, message_id=event.message_id)
            for one in shown
        ]

    def _pictures(self, event: events.User) -> tuple[Attachment, ...]:
        """Which the person put beside their words; the transcript has them, and words that name them."""
        if "[picture " not in event.text:
            return ()
        if self._pictured is None:  # looked for once: a transcript may be long
            said = (one.message for one in self._rail.conversation.messages())
            users = (one for one in said if isinstance(one, UserMessage))
            self._pictured = {one.message_id: one.attachments for one in users if one.attachments}
        return self._pictured.get(event.message_id, ())

    def _used(self, event: events.Usage) -> list[Update]:
        if event.cost is not None:
            self._cost = (self._cost or 0.0) + event.cost
        size = self._window()
        used = event.input_tokens + event.output_tokens
        if not size or not used:
            return []
        cost = Cost(amount=self._cost, currency="USD") if self._cost is not None else None
        return [UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost)]


def _spoken(event: AnyEvent, *, again: bool) -> list[Update]:
    """What is said, by the model or by handrail, and the mode."""
    match event:
        case events.Text():
            return [build_message_chunk(event.text, event.message_id)]
        case events.Reasoning():
            return [build_thought_chunk(event)]
        case events.Mode():
            return [update_current_mode(event.mode)]
        case _:
            said = render_event(event, again=again)
            return [build_message_chunk(said)] if said else []


def _entry(item: TodoItem) -> Any:
    return plan_entry(item.text, status=_STATUS[item.status])
