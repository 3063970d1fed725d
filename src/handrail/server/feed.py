"""The feed of a task: its events, encoded once for all subscribers.

A subscriber has only a position. One that lags behind reads pages from the journal, so it takes no memory.
"""

import asyncio
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, aclosing, suppress
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from handrail.protocol.calls import ToolCall
from handrail.protocol.errors import HandrailError
from handrail.protocol.events import AnyEvent, BrokenEvent
from handrail.protocol.wire import encode
from handrail.server.options import ApiFailure
from handrail.server.wire import Closing, OutputFrame, Task, TaskFrame
from handrail.state import SessionJournal

if TYPE_CHECKING:
    from handrail.dialects.adapters import EventAdapter

_Result = TypeVar("_Result")
_THREADS = 3
_PAGE_EVENTS = 100
_MAX_CACHED_CHARS = 8_000_000
_MAX_OUTPUTS = 200
_MAX_OUTPUT_CHARS = 20_000
_GATHER_SECONDS = 0.02
"""New events are read at most this often."""
_DESCRIBE_SECONDS = 0.25
_BEAT_SECONDS = 15.0


class TaskSource(Protocol):
    """Where tasks are stored. Its methods are for any thread, and raise ApiFailure if there is no such task."""

    poll_seconds: float
    """How often followed tasks are checked for events without an announcement."""

    def describe(self, task_id: str, /) -> Task: ...

    def find_workspace(self, task_id: str, /) -> str: ...

    def open_journal(self, task_id: str, /) -> AbstractContextManager[SessionJournal]:
        """The journal for reading."""
        ...


class FeedRecord(NamedTuple):
    """An event as JSON. In a dialect an event may have several records."""

    seq: int
    text: str
    frame: str
    """For a WebSocket."""
    is_last: bool
    """Whether it is the last one of its event, so that a client may resume after it."""


class FeedBatch(NamedTuple):
    """What a subscriber gets at once, in this order. An empty one shows that the feed works."""

    records: Sequence[FeedRecord] = ()
    caught_up: int | None = None
    """The last event, if the subscriber has all stored ones now for the first time."""
    frames: Sequence[tuple[str, str]] = ()
    """Frames that are not stored, each with its type: the task, the output of previews."""


class FeedEnd(Exception):  # noqa: N818  it is no error
    """There is nothing more to follow."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Refresher:
    """Runs work soon after it was woken, once at a time, with a pause after it."""

    def __init__(self, work: Callable[[], Awaitable[None]], pause: float) -> None:
        self._work, self._pause = work, pause
        self._is_due = False
        self._task: asyncio.Future[None] | None = None

    def wake(self) -> None:
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while self._is_due:
            self._is_due = False
            await self._work()
            await asyncio.sleep(self._pause)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()


class _Page:
    def __init__(self, start: int, *, needs_seq: bool) -> None:
        """`needs_seq`: the records have no numbers of their own."""
        self._needs_seq = needs_seq
        self.records: list[FeedRecord] = []
        self.until = start
        """The last event that it covers."""
        self.end = start + _PAGE_EVENTS
        self.chars = 0

    def add(self, seq: int, texts: Sequence[str]) -> None:
        self.until = seq
        for number, text in enumerate(texts, start=1):
            is_last = number == len(texts)
            place = f',"seq":{seq}' if is_last and self._needs_seq else ""
            self.records.append(FeedRecord(seq, text, f'{{"type":"event","event":{text}{place}}}', is_last))
            self.chars += 2 * len(text)


class TaskFeed:
    """One task with at least one subscriber. Its coroutines run in the event loop of the server."""

    def __init__(self, feeds: "TaskFeeds", task_id: str, dialect: str | None) -> None:
        """Opens the journal. ApiFailure if there is no such task."""
        self._feeds, self._task_id, self._dialect = feeds, task_id, dialect
        workspace = feeds.source.find_workspace(task_id)
        self._stack = ExitStack()
        self._journal = self._stack.enter_context(feeds.source.open_journal(task_id))
        self._renderer = EventRenderer(self._journal, workspace, dialect)
        self._last = self._journal.last_seq()
        """The last event that is known here."""
        self.subscribers = 0
        self._tick = asyncio.Event()
        self._pages: OrderedDict[int, _Page] = OrderedDict()
        self._reading = asyncio.Lock()
        self._news = _Refresher(self._refresh, _GATHER_SECONDS)
        self._description = _Refresher(self.describe, _DESCRIBE_SECONDS)
        """Events do not wait for it."""
        self._task: Task | None = None
        self._task_frame = ""
        self._task_number = 0
        self._outputs: deque[tuple[str, str]] = deque(maxlen=_MAX_OUTPUTS)
        self._output_number = 0
        self._beats = 0
        self._end: int | None = None

    async def follow(self, after: int) -> AsyncGenerator[FeedBatch]:
        """Yields what comes after an event. FeedEnd when the task is removed or the server stops."""
        after, task, output, beats, is_behind = min(after, self._last), 0, self._output_number, self._beats, True
        while True:
            tick = self._tick
            if self._end is not None:
                raise FeedEnd(self._end)
            frames = [("task", self._task_frame)] if task != self._task_number else []
            task = self._task_number
            records, until = await self._read(after) if after < self._last else ((), after)
            if until == after:
                if output != self._output_number:
                    frames += list(self._outputs)[output - self._output_number :]
                output = self._output_number
            if until > after or is_behind or frames or beats != self._beats:
                yield FeedBatch(records, after if is_behind and until == after else None, frames)
                is_behind, after, beats = is_behind and until > after, until, self._beats
            else:
                await tick.wait()

    # News

    async def describe(self) -> None:
        """Sends the task to the subscribers if it has changed."""
        try:
            task = await self._feeds.in_thread(lambda: self._feeds.source.describe(self._task_id))
        except (ApiFailure, HandrailError):
            self.end(Closing.NOT_FOUND)
            return
        if self._task is None or _drop_counts(task) != _drop_counts(self._task):
            self._task_frame = encode(TaskFrame(task=task)).decode()
            self._task_number += 1
            self._notify()
        self._task = task

    def wake(self) -> None:
        """Reads new events soon. In the event loop."""
        self._news.wake()
        self._description.wake()

    def show_output(self, call: ToolCall, output: str) -> None:
        """Sends output of a preview to those who follow now."""
        frame = OutputFrame(tool_call_id=call.tool_call_id, output=output[-_MAX_OUTPUT_CHARS:])
        self._outputs.append(("preview", encode(frame).decode()))
        self._output_number += 1
        self._notify()

    def has_news(self) -> bool:
        """Whether the journal has new events, or a turn of another process may have ended. From any thread."""
        if self._task is not None and self._task.state == "running":
            return True
        try:
            return self._journal.last_seq() != self._last
        except HandrailError:  # it was removed
            return True

    def beat(self) -> None:
        """Lets every subscriber show that the connection works."""
        self._beats += 1
        self._notify()

    def end(self, code: int) -> None:
        self._end = code
        self._notify()

    def close(self) -> None:
        self._news.close()
        self._description.close()
        self._stack.close()

    def _notify(self) -> None:
        self._tick.set()
        self._tick = asyncio.Event()

    async def _refresh(self) -> None:
        try:
            last = await self._feeds.in_thread(self._journal.last_seq)
            if last != self._last:
                self._last = last
                await self._load((last - 1) // _PAGE_EVENTS)
                self._notify()
        except HandrailError:  # the journal is gone
            self.end(Closing.NOT_FOUND)

    # Pages

    async def _read(self, after: int) -> tuple[Sequence[FeedRecord], int]:
        """The records after an event, at most a page of them, and the last event that they cover."""
        page = await self._load(after // _PAGE_EVENTS)
        return page.records[bisect_right(page.records, after, key=lambda record: record.seq) :], max(after, page.until)

    async def _load(self, number: int) -> _Page:
        """A page, complete up to the last known event."""
        page = self._pages.get(number)
        if page is None or page.until < min(page.end, self._last):
            async with self._reading:
                page = self._pages.setdefault(number, _Page(number * _PAGE_EVENTS, needs_seq=self._dialect is not None))
                if page.until < min(page.end, self._last):
                    for seq, texts in await self._feeds.in_thread(partial(self._renderer.read, page.until, page.end)):
                        page.add(seq, texts or ())
                    self._drop_pages(page)
        return page

    def _drop_pages(self, last_used: _Page) -> None:
        chars = sum(page.chars for page in self._pages.values())
        self._pages.move_to_end((last_used.end - 1) // _PAGE_EVENTS)
        while chars > _MAX_CACHED_CHARS and len(self._pages) > 1:
            chars -= self._pages.popitem(last=False)[1].chars


class EventRenderer:
    """Reads events as JSON. An adapter of a dialect needs them all in order."""

    def __init__(self, journal: SessionJournal, workspace: str, dialect: str | None) -> None:
        self._journal = journal
        self._build = _find_adapter(dialect, workspace)
        self._adapter: EventAdapter | None = None
        self._position = 0

    def read(self, after: int, until: int) -> list[tuple[int, list[str] | None]]:
        """The JSON of events after a number and up to another one. None if an event cannot be read."""
        if self._build is not None and (self._adapter is None or self._position != after):
            self._adapter = self._build()
            for event in takewhile(lambda event: event.seq <= after, self._journal.events(0)):
                self._render(event)
        found = takewhile(lambda event: event.seq <= until, self._journal.events(after))
        read = [(event.seq, self._render(event)) for event in found]
        self._position = read[-1][0] if read else after
        return read

    def _render(self, event: AnyEvent | BrokenEvent) -> list[str] | None:
        if isinstance(event, BrokenEvent):
            return None
        records = (event,) if self._adapter is None else self._adapter.render(event)
        return [encode(record).decode() for record in records]


def _find_adapter(dialect: str | None, workspace: str) -> "Callable[[], EventAdapter] | None":
    if dialect is None:
        return None
    from handrail.dialects.adapters import ADAPTERS  # noqa: PLC0415  few servers speak a dialect

    return (lambda: ADAPTERS[dialect](workspace)) if dialect in ADAPTERS else None


class TaskFeeds:
    """The feeds of the tasks that have followers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, source: TaskSource, dialect: str | None) -> None:
        self._loop, self.source, self._dialect = loop, source, dialect
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="handrail-feed")
        self._feeds: dict[tuple[str, str | None], TaskFeed] = {}
        """By task and dialect."""
        self._opening = asyncio.Lock()
        self._checking: asyncio.Task[None] | None = None
        self._closed = False

    async def follow(self, task_id: str, after: int, *, canonical: bool = False) -> AsyncGenerator[FeedBatch]:
        """Yields what comes after an event of a task. ApiFailure if there is no such task.

        `canonical`: events of the protocol, whatever the dialect of the server.
        """
        key = task_id, None if canonical else self._dialect
        feed = await self._open(*key)
        try:
            async with aclosing(feed.follow(after)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            feed.subscribers -= 1
            if not feed.subscribers:
                self._feeds.pop(key, None)
                feed.close()

    def wake(self, task_id: str) -> None:
        """Tells that a task may have changed. From any thread."""
        self._tell(task_id, TaskFeed.wake)

    def show_output(self, task_id: str, call: ToolCall, output: str) -> None:
        """Sends output of a preview. From any thread."""
        self._tell(task_id, lambda feed: feed.show_output(call, output))

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await self._loop.run_in_executor(self._pool, work)

    def close(self) -> None:
        """Ends all feeds."""
        self._closed = True
        if self._checking is not None:
            self._checking.cancel()
        for feed in self._feeds.values():
            feed.end(Closing.RESTARTING)

    def _tell(self, task_id: str, news: Callable[[TaskFeed], None]) -> None:
        keys = {(task_id, None), (task_id, self._dialect)}

        def tell() -> None:
            for key in keys & self._feeds.keys():
                news(self._feeds[key])

        if keys & self._feeds.keys():
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(tell)

    async def _open(self, task_id: str, dialect: str | None) -> TaskFeed:
        async with self._opening:
            if self._closed:
                raise FeedEnd(Closing.RESTARTING)
            feed = self._feeds.get((task_id, dialect))
            if feed is None:
                feed = await self.in_thread(lambda: TaskFeed(self, task_id, dialect))
                await feed.describe()
                self._feeds[task_id, dialect] = feed
            feed.subscribers += 1
            if self._checking is None or self._checking.done():
                self._checking = self._loop.create_task(self._check_others())
            return feed

    async def _check_others(self) -> None:
        """Finds the events of other processes."""
        beaten = self._loop.time()
        while self._feeds:
            await asyncio.sleep(self.source.poll_seconds)
            feeds = list(self._feeds.values())
            if self._loop.time() - beaten > _BEAT_SECONDS:
                beaten = self._loop.time()
                for feed in feeds:
                    feed.beat()
            for feed in await self.in_thread(lambda: list(filter(TaskFeed.has_news, feeds))):  # noqa: B023
                feed.wake()


def _drop_counts(task: Task) -> Task:
    """The task without the fields that every event changes."""
    return replace(task, last_seq=0, updated=None)
