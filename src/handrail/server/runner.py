"""The runner of tasks: their open sessions, their turns, their removal."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from handrail.api import Handrail
from handrail.async_api import AsyncHandrail
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import UsageError
from handrail.protocol.messages import UserMessage
from handrail.server.directory import TaskDirectory, TaskFolder
from handrail.server.feed import FeedSource, TaskFeeds
from handrail.server.open_task import OpenTask, open_rail
from handrail.server.options import ApiFailure, ServerOptions
from handrail.server.wire import Task
from handrail.state import has_lease, make_session_id

_MAX_OPEN = 64
_IDLE_SECONDS = 300.0
_LOOK_SECONDS = 15.0
_CLOSE_SECONDS = 10.0
_Result = TypeVar("_Result")


class TaskRunner:
    """The open sessions of a server. Each runs one turn at a time.

    Coroutines run in the event loop. The other methods are for the threads of handlers.
    """

    def __init__(self, options: ServerOptions, loop: asyncio.AbstractEventLoop) -> None:
        self._options, self._loop = options, loop
        self.directory = TaskDirectory(options)
        self.feeds = TaskFeeds(loop, FeedSource(self.directory.find, self.describe, options.dialect))
        self._open: dict[str, asyncio.Future[OpenTask]] = {}
        self._closes: set[asyncio.Task[None]] = set()
        self._others: set[Handrail] = set()
        self._removing = asyncio.Lock()
        self._idle_check: asyncio.TimerHandle | None = None
        self._closed = False

    # For threads

    @contextmanager
    def rail(self, task_id: str) -> Generator[Handrail]:
        """The open session of a task. It stays open for some time."""
        opened = self._wait(self._acquire(task_id))
        try:
            yield opened.rail.rail
        finally:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(opened.release)

    @contextmanager
    def end_early(self, rail: Handrail) -> Generator[None]:
        """Cancels the calls of a session of its own when the server ends."""
        self._others.add(rail)
        try:
            yield
        finally:
            self._others.discard(rail)

    def describe(self, task_id: str) -> Task:
        return self.directory.describe(self.directory.find(task_id), self.find_live(task_id))

    def find_live(self, task_id: str) -> OpenTask | None:
        """The task, if it is open here. From any thread."""
        opening = self._open.get(task_id)
        return opening.result() if opening is not None and opening.done() and not opening.exception() else None

    def create(self, workspace: str, mode: Mode | None, model: str | None, prompt: str | None) -> Task:
        return self._wait(self._create(workspace, mode, model, prompt))

    def prompt(self, task_id: str, text: str) -> bool:
        """Starts a turn. Returns whether one runs already, so that the model gets the text with its next results."""
        return self._wait(self._prompt(task_id, text))

    def resume(self, task_id: str) -> None:
        """Continues the last turn. ApiFailure if it has ended."""
        self._wait(self._resume(task_id))

    def cancel(self, task_id: str) -> None:
        """Cancels the turn that runs or waits. ApiFailure if there is none."""
        self._wait(self._cancel(task_id))

    def settle(self, task_id: str, act: Callable[[Handrail], object], is_settled: Callable[[Handrail], bool]) -> int:
        """Gives an answer and returns how many requests and questions are left.

        `act` answers, and runs the calls if that was the last answer. It returns the outcome, and `is_settled` tells
        from then on that the answer is stored. The calls go on after this method has returned, and the turn after them.
        An exception of `act` before that is raised.
        """
        self._wait(self._settle(task_id, act, is_settled))
        return self.describe(task_id).waiting

    def go_on(self, task_id: str) -> None:
        """Continues the turn of a model after its last answer. Does nothing if another process does."""
        self._wait(self._go_on(task_id))

    def fork(self, task_id: str, before: int | None) -> Task:
        return self._wait(self._fork(task_id, before))

    def delete(self, task_id: str) -> None:
        self._wait(self._delete(task_id))

    def set_mode(self, task_id: str, mode: Mode) -> None:
        with self.rail(task_id) as rail:
            rail.set_mode(mode)
        self.feeds.wake(task_id)

    def _wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # Open sessions

    async def _acquire(self, task_id: str) -> OpenTask:
        """The open task. It stays open until it is released."""
        folder = await asyncio.to_thread(self.directory.find, task_id)
        opened = await self._open_once(folder)
        opened.hold()
        return opened

    @contextmanager
    def _hold(self, opened: OpenTask) -> Generator[OpenTask]:
        try:
            yield opened
        finally:
            opened.release()

    async def _open_once(self, folder: TaskFolder, mode: Mode | None = None, model: str | None = None) -> OpenTask:
        if self._closed:
            raise ApiFailure(503, "UNAVAILABLE", "The server is shutting down. Nothing was done.")
        opening = self._open.get(folder.id)
        if opening is None:
            self._make_room()
            opening = self._loop.create_task(self._open_task(folder, mode, model))
            self._open[folder.id] = opening
        try:
            opened = await asyncio.shield(opening)
        except BaseException:
            if opening.done() and self._open.get(folder.id) is opening:
                del self._open[folder.id]
            raise
        if self._open.get(folder.id) is not opening:  # it was idle, and closed just now
            return await self._open_once(folder, mode, model)
        return opened

    async def _open_task(self, folder: TaskFolder, mode: Mode | None, model: str | None) -> OpenTask:
        rail, loaded = await asyncio.to_thread(open_rail, self._options, self.directory, folder, mode)
        if self._idle_check is None:
            self._idle_check = self._loop.call_later(_LOOK_SECONDS, self._close_idle)
        on_change = partial(self.feeds.wake, folder.id)
        rail.subscribe(lambda _: on_change())
        rail.subscribe_to_previews(partial(self.feeds.show_output, folder.id))
        return OpenTask(rail, folder, loaded, self._options, model, on_change)

    def _make_room(self) -> None:
        """Closes the task that was not used for the longest time, if there are too many."""
        if len(self._open) < _MAX_OPEN:
            return
        idle = [one for one in map(self.find_live, self._open) if one is not None and not one.is_busy]
        if not idle:
            raise ApiFailure(503, "BUSY", f"{_MAX_OPEN} tasks are running here. Wait until one ends, or cancel one.")
        self._close_soon(min(idle, key=lambda one: one.last_use))

    def _close_idle(self) -> None:
        before = self._loop.time() - _IDLE_SECONDS
        for opened in filter(None, map(self.find_live, list(self._open))):
            if not opened.is_busy and opened.last_use < before:
                self._close_soon(opened)
        self._idle_check = self._loop.call_later(_LOOK_SECONDS, self._close_idle) if self._open else None

    def _close_soon(self, opened: OpenTask) -> asyncio.Task[None]:
        """From now on nobody finds the open session."""
        del self._open[opened.folder.id]
        closing = self._loop.create_task(self._close_task(opened))
        self._closes.add(closing)
        closing.add_done_callback(self._closes.discard)
        return closing

    async def _close_task(self, opened: OpenTask) -> None:
        await opened.close()
        self.feeds.wake(opened.folder.id)

    async def close(self) -> None:
        """Cancels all turns and closes all sessions. Pending requests stay pending."""
        self._closed = True
        if self._idle_check is not None:
            self._idle_check.cancel()
        await asyncio.gather(*self._open.values(), return_exceptions=True)
        live = [one for one in map(self.find_live, list(self._open)) if one is not None]
        turns = [one.turn for one in live if one.cancel() and one.turn is not None]
        for rail in (*self._others, *(one.rail for one in live if one.is_busy and not one.is_running)):
            rail.cancel()  # direct calls
        if turns:
            await asyncio.wait(turns, timeout=_CLOSE_SECONDS)
        for one in live:
            self._close_soon(one)
        await asyncio.gather(*self._closes, return_exceptions=True)
        self.feeds.close()

    # Turns

    async def _create(self, workspace: str, mode: Mode | None, model: str | None, prompt: str | None) -> Task:
        self._make_room()  # a refusal leaves no folder
        state = self._options.state
        task_id = make_session_id()
        folder = TaskFolder(task_id, workspace, await asyncio.to_thread(state.session, workspace, task_id))
        opened = await self._open_once(folder, mode, model)
        opened.hold()
        with self._hold(opened):
            if prompt is not None:
                await opened.open_agent()  # without a model there is no task
            await opened.rail.set_mode(opened.rail.mode)  # so that a restart finds the mode
            if prompt is not None:
                await opened.start(prompt)
            return await asyncio.to_thread(self.directory.describe, folder, opened)

    async def _prompt(self, task_id: str, text: str) -> bool:
        with self._hold(await self._acquire(task_id)) as opened:
            if not opened.is_running:
                _check_lease(opened.folder)
                if await opened.start(text):
                    return False
            opened.queue(text)
            return True

    async def _resume(self, task_id: str) -> None:
        with self._hold(await self._acquire(task_id)) as opened:
            task = await asyncio.to_thread(self.directory.describe, opened.folder, opened)
            if task.state not in {"interrupted", "failed"}:
                raise ApiFailure(409, "CONFLICT", f"The task is {task.state}: no turn was interrupted.")
            if not await opened.start(None):
                raise ApiFailure(409, "CONFLICT", "The task is running: another client continued it.")

    async def _cancel(self, task_id: str) -> None:
        with self._hold(await self._acquire(task_id)) as opened:
            if opened.cancel():
                return
            _check_lease(opened.folder)
            task = await asyncio.to_thread(self.directory.describe, opened.folder, opened)
            if task.state not in {"waiting", "interrupted"} or not await opened.has_transcript():
                raise ApiFailure(409, "CONFLICT", f"The task is {task.state}: there is no turn to cancel.")
            if not await opened.start(None, cancel=True):
                opened.cancel()

    async def _settle(
        self, task_id: str, act: Callable[[Handrail], object], is_settled: Callable[[Handrail], bool]
    ) -> None:
        with self._hold(await self._acquire(task_id)) as opened:
            await opened.settle(act, is_settled)

    async def _go_on(self, task_id: str) -> None:
        with self._hold(await self._acquire(task_id)) as opened:
            if not opened.is_running and not has_lease(opened.folder.path) and await opened.has_transcript():
                await opened.start(None)

    # Forks, removal

    async def _fork(self, task_id: str, before: int | None) -> Task:
        with self._hold(await self._acquire(task_id)) as source:
            number = None if before is None else await source.rail.in_pool(lambda: _find_message(source.rail, before))
            fork_id = await source.rail.fork_session(before=number)
            mode = source.rail.mode
        folder = await asyncio.to_thread(self.directory.find, fork_id)
        opened = await self._open_once(folder, mode)
        opened.hold()
        with self._hold(opened):
            await opened.rail.set_mode(mode)
            return await asyncio.to_thread(self.directory.describe, folder, opened)

    async def _delete(self, task_id: str) -> None:
        async with self._removing:
            folder = await asyncio.to_thread(self.directory.find, task_id)
            live = self.find_live(task_id)
            if live is not None and not live.is_busy:
                await self._close_soon(live)
            state = await asyncio.to_thread(self._options.state.remove_session, folder.path, ("idle", "unreadable"))
            if state not in {"idle", "unreadable"}:
                raise ApiFailure(409, "CONFLICT", f"The task is {_WHY_KEPT[state]}. Nothing was removed.")
            await asyncio.to_thread(self._options.state.remove_outputs)
        self.feeds.wake(task_id)


_WHY_KEPT = {
    "running": "in use",
    "background": "kept by its background process. Stop the process first",
    "waiting": "waiting for an answer. Answer its requests or cancel the turn first",
}


def _check_lease(folder: TaskFolder) -> None:
    if has_lease(folder.path):
        raise ApiFailure(409, "CONFLICT", f"Another process runs a turn of {folder.id}. Wait until it ends.")


def _find_message(rail: AsyncHandrail, seq: int) -> int:
    """The number of the message that an event of a prompt is about."""
    event = next(iter(rail.events(seq - 1)), None)
    ids = {getattr(event, "message_id", None)} if event is not None and event.seq == seq else set[str]()
    for one in rail.conversation.messages():
        if isinstance(one.message, UserMessage) and one.message.message_id in ids:
            return one.number
    raise UsageError(f"event {seq} is not a prompt. Nothing was forked.")
