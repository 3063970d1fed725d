"""The journal of a session as updates for an editor."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from acp.helpers import (
    SessionUpdate,
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
    AgentThoughtChunk,
    ConfigOptionUpdate,
    Cost,
    PlanEntryStatus,
    SessionInfoUpdate,
    UsageUpdate,
    UserMessageChunk,
)
from msgspec.structs import replace

from handrail.acp.cards import (
    MAX_TEXT_CHARS,
    DiffContent,
    build_raw_output,
    build_result_contents,
    build_session_title,
    build_verbatim_content,
    get_tool_kind,
    list_locations,
    render_call_title,
)
from handrail.async_api import AsyncHandrail
from handrail.protocol import events
from handrail.protocol.errors import HandrailError, ToolError
from handrail.protocol.events import AnyEvent
from handrail.protocol.messages import UserMessage
from handrail.protocol.results import Attachment, ToolResult
from handrail.protocol.text import to_one_line

Update = SessionUpdate | UsageUpdate | ConfigOptionUpdate
Send = Callable[[Update], Awaitable[None]]
_STATUS: dict[str, PlanEntryStatus] = {"pending": "pending", "active": "in_progress", "done": "completed"}
_NO_CARD = frozenset({"display", "todo"})
"""Tools whose effect the editor shows itself."""
_MARKUP = re.compile(r"([\[\]<`])")


class JournalFollower:
    """Sends new events of the journal: in order, each once, also those of other processes.

    A listener only wakes it. The events are read from the journal.
    """

    def __init__(self, rail: AsyncHandrail, updates: "UpdateBuilder", send: Send, after: int) -> None:
        """`after`: the last event that the editor knows."""
        self._rail, self._updates, self._send = rail, updates, send
        self._last = after
        self._more = asyncio.Event()
        self._lock = asyncio.Lock()
        loop = asyncio.get_running_loop()
        self._unsubscribe = rail.subscribe(lambda _: _wake(loop, self._more))
        self._following = loop.create_task(self._follow())

    async def catch_up(self) -> None:
        """Sends all events up to now."""
        async with self._lock:
            for event in await self._rail.in_pool(lambda: list(self._rail.events(self._last))):
                self._last = event.seq
                if isinstance(event, events.Event):
                    for update in await self._updates.build_updates(event, is_replay=False):
                        await self._send(update)

    async def close(self) -> None:
        self._unsubscribe()
        self._following.cancel()
        await asyncio.wait({self._following})

    async def _follow(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            await self.catch_up()


def _wake(loop: asyncio.AbstractEventLoop, more: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(more.set)


async def replay_session(rail: AsyncHandrail, updates: "UpdateBuilder", send: Send) -> int:
    """Sends all events of a session and its plan. Returns the number of the last event."""
    stored = await rail.in_pool(lambda: list(rail.events()))
    for event in _join_chunks(one for one in stored if isinstance(one, events.Event)):
        for update in await updates.build_updates(event, is_replay=True):
            await send(update)
    for update in await updates.build_plan():
        await send(update)
    return stored[-1].seq if stored else 0


def _join_chunks(stored: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """Joins neighbouring chunks of a message, and drops the interim output of calls."""
    last: AnyEvent | None = None
    for event in stored:
        if isinstance(event, events.ToolCallUpdate):
            continue
        if (
            isinstance(last, events.Text | events.Reasoning)
            and isinstance(event, type(last))
            and event.message_id == last.message_id
        ):
            last = replace(last, text=last.text + event.text)
            continue
        if last is not None:
            yield last
        last = event
    if last is not None:
        yield last


class UpdateBuilder:
    """Builds the updates for events. It remembers facts that later events do not repeat."""

    def __init__(self, rail: AsyncHandrail, folder: str, get_window: Callable[[], int | None]) -> None:
        """`folder`: the workspace as the editor calls it. `get_window`: how many tokens the model takes, if known."""
        self._rail, self._folder, self._get_window = rail, folder, get_window
        self._cost: float | None = None
        self._has_title = False
        self._printed: dict[str, str] = {}
        """The last output of running calls."""
        self._pictures: dict[str, tuple[Attachment, ...]] | None = None
        """The pictures of prompts, by message id. None: not loaded yet."""

    async def build_updates(self, event: AnyEvent, *, is_replay: bool) -> Sequence[Update]:
        """The updates for an event. In a replay the editor does not know the prompts either."""
        match event:
            case events.ToolCallStart() | events.ToolCallRunning() | events.ToolCallUpdate():
                return self._build_progress(event)
            case events.ToolCallEnd() | events.ToolCallError():
                return await self._build_end(event.result)
            case events.User():
                return [*self._build_title(event), *(await self._build_prompt(event) if is_replay else ())]
            case events.Usage():
                return self._build_usage(event)
            case _:
                return _build_message(event, is_replay=is_replay)

    async def build_plan(self) -> list[Update]:
        """The `todo` list of the model, if it has one."""
        items = await self._rail.todo()
        return [update_plan([plan_entry(one.text, status=_STATUS[one.status]) for one in items])] if items else []

    def _build_progress(
        self, event: events.ToolCallStart | events.ToolCallRunning | events.ToolCallUpdate
    ) -> list[Update]:
        call, tool = event.tool_call_id, event.tool_call_name
        if tool in _NO_CARD:
            return []
        if isinstance(event, events.ToolCallStart):
            return [
                start_tool_call(
                    call,
                    render_call_title(tool, event.args),
                    kind=get_tool_kind(tool),
                    status="pending",
                    locations=list_locations(tool, event.args, self._folder),
                    raw_input=event.args,
                )
            ]
        if isinstance(event, events.ToolCallRunning) or not event.output:
            return [update_tool_call(call, status="in_progress")]
        self._printed[call] = printed = (self._printed.get(call, "") + event.output)[-MAX_TEXT_CHARS:]
        return [update_tool_call(call, status="in_progress", content=[build_verbatim_content(printed)])]

    async def _build_end(self, result: ToolResult[Any]) -> list[Update]:
        self._printed.pop(result.tool_call_id, None)
        if result.name in _NO_CARD and result.ok:
            return await self.build_plan() if result.name == "todo" else []
        diff = await self._load_diff(result.meta.undo)
        update = update_tool_call(
            result.tool_call_id,
            status="completed" if result.ok else "failed",
            content=build_result_contents(result, diff),
            locations=diff.locations if diff is not None and diff.locations else None,
            raw_output=build_raw_output(result),
        )
        if result.name not in _NO_CARD:
            return [update]
        # It failed, so it gets a card after all.
        return [start_tool_call(result.tool_call_id, to_one_line(result.name), kind=get_tool_kind(result.name)), update]

    async def _load_diff(self, number: int | None) -> DiffContent | None:
        if number is None:
            return None
        try:
            return DiffContent(await self._rail.diff(number), self._folder)
        except (ToolError, HandrailError):
            return None  # the change is not stored any more

    def _build_title(self, event: events.User) -> list[Update]:
        if self._has_title or not event.text.strip():
            return []
        self._has_title = True
        title, at = build_session_title(event.text), event.time.isoformat()
        return [SessionInfoUpdate(session_update="session_info_update", title=title, updated_at=at)]

    async def _build_prompt(self, event: events.User) -> list[Update]:
        if self._pictures is None:
            self._pictures = await self._rail.in_pool(self._load_pictures)
        pictures = self._pictures.get(event.message_id, ())
        blocks = [text_block(event.text), *(image_block(one.content or "", one.mime) for one in pictures)]
        return [
            UserMessageChunk(session_update="user_message_chunk", content=block, message_id=event.message_id)
            for block in blocks
        ]

    def _load_pictures(self) -> dict[str, tuple[Attachment, ...]]:
        """The transcript has them. The journal only has the text."""
        messages = (one.message for one in self._rail.conversation.messages())
        return {one.message_id: one.attachments for one in messages if isinstance(one, UserMessage) and one.attachments}

    def _build_usage(self, event: events.Usage) -> list[Update]:
        if event.cost is not None:
            self._cost = (self._cost or 0.0) + event.cost
        size = self._get_window()
        used = event.input_tokens + event.output_tokens
        if not size or not used:
            return []
        cost = Cost(amount=self._cost, currency="USD") if self._cost is not None else None
        return [UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost)]


def _build_message(event: AnyEvent, *, is_replay: bool) -> list[Update]:
    match event:
        case events.Text():
            return [build_message_chunk(event.text, event.message_id)]
        case events.Reasoning():
            content, message = text_block(event.text), event.message_id
            return [AgentThoughtChunk(session_update="agent_thought_chunk", content=content, message_id=message)]
        case events.Mode():
            return [update_current_mode(event.mode)]
        case _:
            text = _render_event(event, is_replay=is_replay)
            return [build_message_chunk(text)] if text else []


def build_message_chunk(text: str, message_id: str | None = None) -> AgentMessageChunk:
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text), message_id=message_id)


def build_remark_chunk(text: str) -> AgentMessageChunk:
    return build_message_chunk(_format_remark(text))


def _format_remark(text: str) -> str:
    """A text of handrail itself, as a quote: the model did not say it. Markup is escaped, so nothing becomes a link."""
    escaped = _MARKUP.sub(r"\\\1", to_one_line(text))
    return f"\n\n> {escaped}\n\n"


def _render_event(event: AnyEvent, *, is_replay: bool) -> str:
    """An event as a paragraph. Empty if the person does not need it."""
    match event:
        case events.Display():
            title = f"**{to_one_line(event.title)}**\n\n" if event.title else ""
            return f"\n\n{title}{event.content.rstrip()}\n\n"
        case events.Notice() | events.Warning(tool_call_id=None):
            return _format_remark(event.text)
        case events.Network() if not event.allowed:
            return _format_remark(f"{event.host}:{event.port} was not reached: {event.reason}")
        case events.Process() if event.state == "ended":
            how = event.reason or (f"exit {event.exit_code}" if event.exit_code is not None else event.signal)
            return _format_remark(f"{event.process} has ended ({how}): {event.command}")
        case events.Error() if is_replay:
            return _format_remark(event.message)
        case _:
            return ""
