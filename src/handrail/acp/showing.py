"""What an editor is shown of the events of a session, the same whether they happen now or are told again."""

import re
from collections.abc import Callable
from typing import Any

from acp.helpers import (
    image_block,
    plan_entry,
    start_tool_call,
    text_block,
    update_current_mode,
    update_plan,
    update_tool_call,
)
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    Cost,
    CurrentModeUpdate,
    PlanEntryStatus,
    SessionInfoUpdate,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)

from handrail.acp.cards import first_line, kind_of, places_of, title_of
from handrail.acp.contents import MOST_TEXT, Shown, of_result, raw_output, verbatim
from handrail.async_rail import AsyncHandrail
from handrail.protocol import event as events
from handrail.protocol.error import HandrailError, ToolError
from handrail.protocol.event import AnyEvent
from handrail.protocol.message import UserMessage
from handrail.protocol.result import Attachment, ToolResult
from handrail.protocol.todo import TodoItem
from handrail.terminal.visible import one_line

Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | CurrentModeUpdate
    | SessionInfoUpdate
    | UsageUpdate
)
_NO_CARD = frozenset({"display", "todo"})
"""What they do is shown by itself."""
_STATUS: dict[str, PlanEntryStatus] = {"pending": "pending", "active": "in_progress", "done": "completed"}
_MARKUP, _ESCAPED = re.compile(r"([\[\]<`])"), r"\\\1"


class Showing:
    """Turns events into updates. It remembers of a call what its later events do not say again."""

    def __init__(self, rail: AsyncHandrail, window: Callable[[], int | None]) -> None:
        """`window`: how many tokens the model takes, where that is known."""
        self._rail, self._window = rail, window
        self._printed: dict[str, str] = {}
        """The last of what running calls printed."""
        self._cost: float | None = None
        self._titled = False

    async def of(self, event: AnyEvent, *, again: bool) -> list[Update]:
        """The updates for an event. `again`: it is an older one, and the editor does not know what the person said."""
        match event:
            case events.ToolCallStart() | events.ToolCallRunning() | events.ToolCallUpdate():
                return self._under_way(event)
            case events.ToolCallEnd() | events.ToolCallError():
                return await self._ended(event.result)
            case events.User():
                return [*self._named(event), *(await self._said(event) if again else ())]
            case events.Usage():
                return self._used(event)
            case _:
                return _spoken(event, again=again)

    def _named(self, event: events.User) -> list[Update]:
        """A session is called by what the person said first."""
        if self._titled or not event.text.strip():
            return []
        self._titled = True
        title, at = first_line(event.text), event.time.isoformat()
        return [SessionInfoUpdate(session_update="session_info_update", title=title, updated_at=at)]

    def _under_way(self, event: events.ToolCallStart | events.ToolCallRunning | events.ToolCallUpdate) -> list[Update]:
        call, tool = event.tool_call_id, event.tool_call_name
        if tool in _NO_CARD:
            return []
        if isinstance(event, events.ToolCallStart):
            return [
                start_tool_call(
                    call,
                    title_of(tool, event.args),
                    kind=kind_of(tool),
                    status="pending",
                    locations=places_of(tool, event.args, self._rail.workspace),
                    raw_input=event.args,
                )
            ]
        if isinstance(event, events.ToolCallRunning) or not event.output:
            return [update_tool_call(call, status="in_progress")]
        printed = (self._printed.get(call, "") + event.output)[-MOST_TEXT:]
        self._printed[call] = printed
        return [update_tool_call(call, status="in_progress", content=[verbatim(printed)])]

    async def _ended(self, result: ToolResult[Any]) -> list[Update]:
        self._printed.pop(result.tool_call_id, None)
        if result.name == "todo" and result.ok:
            return await self.plan()
        if result.name in _NO_CARD and result.ok:
            return []
        shown = await self._changed(result.meta.undo)
        update = update_tool_call(
            result.tool_call_id,
            status="completed" if result.ok else "failed",
            content=of_result(result, shown),
            locations=shown.places if shown is not None and shown.places else None,
            raw_output=raw_output(result),
        )
        if result.name not in _NO_CARD:
            return [update]
        # A card after all, since it failed.
        return [start_tool_call(result.tool_call_id, one_line(result.name), kind=kind_of(result.name)), update]

    async def _said(self, event: events.User) -> list[Update]:
        pictures = await self._rail.in_pool(lambda: self._pictures(event))
        shown = [text_block(event.text), *(image_block(one.content or "", one.mime) for one in pictures)]
        return [
            UserMessageChunk(session_update="user_message_chunk", content=one, message_id=event.message_id)
            for one in shown
        ]

    def _pictures(self, event: events.User) -> tuple[Attachment, ...]:
        """Which the person put beside their words; the talk has them, and words that name them."""
        if "[picture " not in event.text:
            return ()
        said = (one.message for one in self._rail.conversation.messages())
        found = (one for one in said if isinstance(one, UserMessage) and one.message_id == event.message_id)
        return next((one.attachments for one in found), ())

    async def plan(self) -> list[Update]:
        """What the model has to do, where it said so."""
        return [update_plan(map(_entry, items))] if (items := await self._rail.todo()) else []

    async def _changed(self, number: int | None) -> Shown | None:
        if number is None:
            return None
        try:
            return Shown(await self._rail.diff(number), self._rail.workspace)
        except (ToolError, HandrailError):
            return None  # older than changes are kept for

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
            return [words(event.text, event.message_id)]
        case events.Reasoning():
            return [_thought(event)]
        case events.Mode():
            return [update_current_mode(event.mode)]
        case _:
            told = _told(event, again=again)
            return [words(told)] if told else []


def words(text: str, message: str | None = None) -> AgentMessageChunk:
    """A piece of what is said to the person."""
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text), message_id=message)


def _thought(event: events.Reasoning) -> AgentThoughtChunk:
    return AgentThoughtChunk(
        session_update="agent_thought_chunk", content=text_block(event.text), message_id=event.message_id
    )


def _entry(item: TodoItem) -> Any:
    return plan_entry(item.text, status=_STATUS[item.status])


def _told(event: AnyEvent, *, again: bool) -> str:
    """What is neither words of the model nor a call, as a paragraph of its own; empty where nobody needs it."""
    match event:
        case events.Display():
            title = f"**{one_line(event.title)}**\n\n" if event.title else ""
            return f"\n\n{title}{event.content.rstrip()}\n\n"
        case events.Notice() | events.Warning() if getattr(event, "tool_call_id", None) is None:
            return remark(event.text)
        case events.Network() if not event.allowed:
            return remark(f"{event.host}:{event.port} was not reached: {event.reason}")
        case events.Process() if event.state == "ended":
            how = event.reason or (f"exit {event.exit_code}" if event.exit_code is not None else event.signal)
            return remark(f"{event.process} has ended ({how}): {event.command}")
        case events.Error() if again:
            return remark(event.message)
        case _:
            return ""


def remark(text: str) -> str:
    """What handrail says by itself, marked: the model did not say it. What it quotes is no picture and no link."""
    return f"\n\n> {_MARKUP.sub(_ESCAPED, one_line(text))}\n\n"
