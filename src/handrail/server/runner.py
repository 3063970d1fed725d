"""The runner of tasks: their open sessions, their turns, their removal."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial, wraps
from typing import Any, Concatenate

from handrail.api import Handrail, Parameters, Returned
from handrail.async_api import AsyncHandrail
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import UsageError
from handrail.protocol.events import Event
from handrail.protocol.messages import UserMessage
from handrail.server.directory import TaskDirectory
from handrail.server.feed import TaskFeeds
from handrail.server.open_task import OpenTask
from handrail.server.options import ApiFailure, ServerOptions, TaskFolder
from handrail.server.wire import Task
from handrail.settings import LoadedSettings
from handrail.state import SessionJournal, has_lease, make_session_id, open_journal

_MAX_OPEN = 64
_IDLE_SECONDS = 300.0
_LOOK_SECONDS = 15.0
_CLOSE_SECONDS = 10.0


def _for_threads(
    method: Callable[Concatenate["TaskRunner", Parameters], Coroutine[Any, Any, Returned]],
) -> Callable[Concatenate["TaskRunner", Parameters], Returned]:
    """The coroutine as a method for the threads of handlers: it runs in the event loop."""

    @wraps(method)
    def run(self: "TaskRunner", *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        return asyncio.run_coroutine_threadsafe(method(self, *args, **kwargs), self.loop).result()

    return run


class TaskRunner:
    """The open sessions of a server. Each runs one turn at a time. Its methods are for the threads of handlers."""

    poll_seconds = 0.4
    """Other processes may write to the journals, and announce nothing."""

    def __init__(self, options: ServerOptions, loop: asyncio.AbstractEventLoop) -> None:
        self._options, self.loop = options, loop
        self.directory = TaskDirectory(options)
        self.handlers: Mapping[str, Callable[..., Any]] = {}
        self.pages: Mapping[str, Callable[[], bytes]] = {}
        self.feeds = TaskFeeds(loop, self, options.dialect)
        self._open: dict[str, OpenTask] = {}
        self._opening = asyncio.Lock()
        self._closes: set[asyncio.Task[None]] = set()
        self._others: set[Handrail] = set()
        self._removing = asyncio.Lock()
        self._idle_check: asyncio.TimerHandle | None = None
        self._closed = False

    @contextmanager
    def end_early(self, rail: Handrail) -> Generator[Handrail]:
        """Closes a session that is no task at the end. Its calls are cancelled when the server ends."""
        with rail:
            self._others.add(rail)
            try:
                yield rail
            finally:
                self._others.discard(rail)

    @contextmanager
    def rail(self, task_id: str) -> Generator[Handrail]:
        """The open session of a task. It stays open for some time."""
        opened = asyncio.run_coroutine_threadsafe(self._acquire(task_id), self.loop).result()
        try:
            yield opened.rail.rail
        finally:
            with suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(opened.release)

    def describe(self, task_id: str) -> Task:
        return self.directory.describe(self.directory.find(task_id), self.find_live(task_id))

    def find_workspace(self, task_id: str) -> str:
        return self.directory.find(task_id).workspace

    def open_journal(self, task_id: str) -> AbstractContextManager[SessionJournal]:
        return open_journal(self.directory.find(task_id).path)

    def find_live(self, task_id: str) -> OpenTask | None:
        """The task, if it is open here. From any thread."""
        return self._open.get(task_id)

    def set_mode(self, task_id: str, mode: Mode) -> None:
        with self.rail(task_id) as rail:
            rail.set_mode(mode)
        self.feeds.wake(task_id)

    # Open sessions

    async def _acquire(self, task: str | TaskFolder, mode: Mode | None = None, model: str | None = None) -> OpenTask:
        """The open task. It stays open until it is released."""
        folder = await asyncio.to_thread(self.directory.find, task) if isinstance(task, str) else task
        async with self._opening:
            if self._closed:
                raise ApiFailure(503, "UNAVAILABLE", "The server is shutting down. Nothing was done.")
            opened = self._open.get(folder.id)
            if opened is None:
                self._make_room()
                opened = self._open[folder.id] = await self._open_task(folder, mode, model)
            opened.hold()
            return opened

    @asynccontextmanager
    async def _use(
        self, task: str | TaskFolder, mode: Mode | None = None, model: str | None = None
    ) -> AsyncGenerator[OpenTask]:
        opened = await self._acquire(task, mode, model)
        try:
            yield opened
        finally:
            opened.release()

    async def _open_task(self, folder: TaskFolder, mode: Mode | None, model: str | None) -> OpenTask:
        rail, loaded = await asyncio.to_thread(self._open_rail, folder, mode)
        if self._idle_check is None:
            self._idle_check = self.loop.call_later(_LOOK_SECONDS, self._close_idle)
        on_change = partial(self.feeds.wake, folder.id)
        rail.subscribe(lambda _: on_change())
        rail.subscribe_to_previews(partial(self.feeds.show_output, folder.id))
        return OpenTask(rail, folder, loaded, self._options, model, on_change)

    def _open_rail(self, folder: TaskFolder, mode: Mode | None) -> tuple[AsyncHandrail, LoadedSettings]:
        """Opens the session of a task. With requests that wait, it has their mode and variables, so that an approval is
        for the same command."""
        options, state = self._options, self._options.state
        summary = self.directory.summarize(folder)
        waiting = None
        if summary.waiting:
            requests = state.open_inbox(folder.workspace).list_requests()
            waiting = next((one for one in requests if one.folder == folder.path), None)
        mode = mode or summary.mode or (waiting.mode if waiting is not None else None)
        loaded = options.load_settings(folder.workspace, mode)
        rail = AsyncHandrail(
            folder.workspace,
            session=folder.id,
            state_dir=state.path,
            settings=loaded,
            on_permission="park",
            variables=None if waiting is None else state.load_variables(waiting),
            sources=options.host.open_sources(loaded, folder.workspace),
            dialect=options.dialect,
        )
        return rail, loaded

    def _make_room(self) -> None:
        """Closes the task that was not used for the longest time, if there are too many."""
        if len(self._open) < _MAX_OPEN:
            return
        idle = [one for one in self._open.values() if not one.is_busy]
        if not idle:
            raise ApiFailure(503, "BUSY", f"{_MAX_OPEN} tasks are running here. Wait until one ends, or cancel one.")
        self._close_soon(min(idle, key=lambda one: one.last_use))

    def _close_idle(self) -> None:
        before = self.loop.time() - _IDLE_SECONDS
        for opened in list(self._open.values()):
            if not opened.is_busy and opened.last_use < before:
                self._close_soon(opened)
        self._idle_check = self.loop.call_later(_LOOK_SECONDS, self._close_idle) if self._open else None

    def _close_soon(self, opened: OpenTask) -> asyncio.Task[None]:
        del self._open[opened.folder.id]
        closing = self.loop.create_task(self._close_task(opened))
        self._closes.add(closing)
        closing.add_done_callback(self._closes.discard)
        return closing

    async def _close_task(self, opened: OpenTask) -> None:
        await opened.close()
        self.feeds.wake(opened.folder.id)

    async def close(self) -> None:
        """Stops all turns, so that they can be resumed, and closes all sessions. Pending requests stay pending."""
        async with self._opening:
            self._closed = True
        if self._idle_check is not None:
            self._idle_check.cancel()
        live = list(self._open.values())
        turns = [one.turn for one in live if one.cancel(leave_open=True) and one.turn is not None]
        for rail in (*self._others, *(one.rail for one in live if one.is_busy and not one.is_running)):
            rail.cancel()  # direct calls
        if turns:
            await asyncio.wait(turns, timeout=_CLOSE_SECONDS)
        await asyncio.gather(*map(self._close_soon, live), *self._closes, return_exceptions=True)
        self.feeds.close()

    # Turns

    @_for_threads
    async def create(self, workspace: str, mode: Mode | None, model: str | None, prompt: str | None) -> Task:
        self._make_room()  # a refusal leaves no folder
        task_id = make_session_id()
        path = await asyncio.to_thread(self._options.state.session, workspace, task_id)
        async with self._use(TaskFolder(task_id, workspace, path), mode, model) as opened:
            if prompt is not None:
                await opened.open_agent()  # without a model there is no task
            await opened.rail.set_mode(opened.rail.mode)  # so that a restart finds the mode
            if prompt is not None:
                await opened.prompt(prompt)
            return await self._describe(opened)

    @_for_threads
    async def prompt(self, task_id: str, text: str) -> bool:
        """Stores a prompt. Returns whether a turn runs, so that the model gets the text with its next results."""
        async with self._use(task_id) as opened:
            if not opened.is_running:
                _check_lease(opened.folder)
            return await opened.prompt(text)

    @_for_threads
    async def resume(self, task_id: str) -> None:
        """Continues the last turn. ApiFailure if it has ended."""
        async with self._use(task_id) as opened:
            task = await self._describe(opened)
            if task.state not in {"interrupted", "failed"}:
                raise ApiFailure(409, "CONFLICT", f"The task is {task.state}: no turn was interrupted.")
            if not await opened.go_on():
                raise ApiFailure(409, "CONFLICT", "The task is running: another client continued it.")

    @_for_threads
    async def cancel(self, task_id: str) -> None:
        """Cancels the turn that runs or waits. ApiFailure if there is none."""
        async with self._use(task_id) as opened:
            if opened.cancel():
                return
            _check_lease(opened.folder)
            task = await self._describe(opened)
            has_turn = await opened.has_transcript() or opened.has_prompts()
            if task.state not in {"waiting", "interrupted"} or not has_turn:
                raise ApiFailure(409, "CONFLICT", f"The task is {task.state}: there is no turn to cancel.")
            if not await opened.go_on(cancel=True):
                opened.cancel()

    @_for_threads
    async def settle(
        self, task_id: str, act: Callable[[Handrail], object], is_answer: Callable[[Event], bool] = lambda _: False
    ) -> int:
        """Gives an answer and returns how many requests and questions are left. `OpenTask.settle` explains the rest."""
        async with self._use(task_id) as opened:
            await opened.settle(act, is_answer)
            return (await self._describe(opened)).waiting

    @_for_threads
    async def fork(self, task_id: str, before: int | None) -> Task:
        async with self._use(task_id) as source:
            number = None if before is None else await source.rail.in_pool(lambda: _find_message(source.rail, before))
            fork_id = await source.rail.fork_session(before=number)
            mode = source.rail.mode
        async with self._use(fork_id, mode) as opened:
            await opened.rail.set_mode(mode)
            return await self._describe(opened)

    async def _describe(self, opened: OpenTask) -> Task:
        return await asyncio.to_thread(self.directory.describe, opened.folder, opened)

    @_for_threads
    async def delete(self, task_id: str) -> None:
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
