"""The public API for asyncio: `AsyncHandrail`."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Self

from handrail.api import CLOSED, Handrail, Parameters, Returned
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import UsageError
from handrail.tools.typed_tools import LATE_TYPES

if TYPE_CHECKING:
    from handrail.runtime.conversation import Conversation
    from handrail.store.approvals import DeferredCalls

if not TYPE_CHECKING:
    globals().update(LATE_TYPES)


def _make_async(
    method: Callable[Concatenate[Handrail, Parameters], Returned],
) -> Callable[Concatenate["AsyncHandrail", Parameters], Awaitable[Returned]]:
    """The method, run in the pool."""

    @wraps(method)
    async def run(self: "AsyncHandrail", *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        return await self.in_pool(lambda: method(self.rail, *args, **kwargs))

    return run


def _forward(
    method: Callable[Concatenate[Handrail, Parameters], Returned],
) -> Callable[Concatenate["AsyncHandrail", Parameters], Returned]:
    """The method without the pool. It waits for nothing once `look_at_servers` has run."""

    @wraps(method)
    def run(self: "AsyncHandrail", *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        return method(self.rail, *args, **kwargs)

    return run


class AsyncHandrail:
    """Handrail for asyncio: the same methods, each run in a pool of threads.

    handrail never asks at the terminal: without `on_permission`, a call that needs approval waits. Several may share a
    `pool`, which the caller shuts down.

    Instead of a workspace you can pass a Handrail. Then both have the same session, the work runs in the event loop's
    own pool, and you close the Handrail.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str] | Handrail,
        *,
        threads: int = 8,
        pool: Executor | None = None,
        **options: Any,
    ) -> None:
        self._borrowed = isinstance(workspace, Handrail)
        if self._borrowed and options:
            given = ", ".join(sorted(options))
            raise UsageError(f"{given} cannot be passed with an open Handrail; pass it to Handrail")
        self.rail = workspace if isinstance(workspace, Handrail) else Handrail(workspace, **options)
        self._own_pool = None if pool or self._borrowed else ThreadPoolExecutor(threads, thread_name_prefix="handrail")
        self._pool: Executor | None = pool or self._own_pool
        self._closed = False

    @classmethod
    async def open(cls, workspace: str | os.PathLike[str], **options: Any) -> Self:
        """Opens a session in a thread. The constructor would block the event loop meanwhile. Takes its options."""
        opening = asyncio.create_task(asyncio.to_thread(cls, workspace, **options))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            await (await opening).close()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def in_pool(self, work: Callable[[], Returned]) -> Returned:
        """Runs work in the pool. Cancelling the wait does not stop it: a call still records its result."""
        if self._closed:
            raise UsageError(CLOSED)
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    @contextmanager
    def working_in(self, pool: Executor) -> Generator[None]:
        """Runs calls in another pool inside the `with` block."""
        before, self._pool = self._pool, pool
        try:
            yield
        finally:
            self._pool = before

    async def look_at_servers(self) -> None:
        """Asks servers for their tools, if these may have changed. Otherwise `specs` does so and blocks the loop."""
        if self.rail.has_servers:
            await self.in_pool(self.rail.look_at_servers)
        else:
            self.rail.look_at_servers()  # checks that it is open

    async def end_session(self) -> None:
        """Closes the session and ends its background processes."""
        await asyncio.to_thread(self._shut_down, self.rail.end_session)

    async def close(self) -> None:
        """Waits for running calls and closes the session. The event loop goes on meanwhile."""
        await asyncio.to_thread(self._shut_down, self.rail.close)

    def _shut_down(self, close: Callable[[], None]) -> None:
        self._closed = not self._borrowed
        if self._own_pool is not None:
            self._own_pool.shutdown()
        if not self._borrowed:
            close()

    @property
    def session_id(self) -> str:
        return self.rail.session_id

    @property
    def workspace(self) -> str:
        """The folder that relative paths start from."""
        return self.rail.workspace

    @property
    def has_servers(self) -> bool:
        return self.rail.has_servers

    @property
    def mode(self) -> Mode:
        return self.rail.mode

    @property
    def sandbox_tier(self) -> int:
        return self.rail.sandbox_tier

    @property
    def permission_wait(self) -> float:
        return self.rail.permission_wait

    @property
    def conversation(self) -> "Conversation":
        """The transcript of this session, for the code that runs the loop."""
        return self.rail.conversation

    @property
    def deferred_calls(self) -> "DeferredCalls":
        """The calls of this session that wait, for clients that do not know handrail's ids."""
        return self.rail.deferred_calls

    read = _make_async(Handrail.read)
    write = _make_async(Handrail.write)
    edit = _make_async(Handrail.edit)
    multi_edit = _make_async(Handrail.multi_edit)
    apply_patch = _make_async(Handrail.apply_patch)
    delete = _make_async(Handrail.delete)
    find = _make_async(Handrail.find)
    grep = _make_async(Handrail.grep)
    ls = _make_async(Handrail.ls)
    exec = _make_async(Handrail.exec)
    process = _make_async(Handrail.process)
    processes = _make_async(Handrail.processes)
    raw_output = _make_async(Handrail.raw_output)
    changes = _make_async(Handrail.changes)
    diff = _make_async(Handrail.diff)
    stored_diff = _make_async(Handrail.stored_diff)
    undo = _make_async(Handrail.undo)
    preview_undo = _make_async(Handrail.preview_undo)
    list_turn_changes = _make_async(Handrail.list_turn_changes)
    redo = _make_async(Handrail.redo)
    preview_redo = _make_async(Handrail.preview_redo)
    line_origin = _make_async(Handrail.line_origin)
    call = _make_async(Handrail.call)
    batch = _make_async(Handrail.batch)
    check_call = _make_async(Handrail.check_call)
    answer = _make_async(Handrail.answer)
    fork_session = _make_async(Handrail.fork_session)
    retry = _make_async(Handrail.retry)
    refresh = _make_async(Handrail.refresh)
    outdated = _make_async(Handrail.outdated)
    is_pending = _make_async(Handrail.is_pending)
    ask = _make_async(Handrail.ask)
    settle_reply = _make_async(Handrail.settle_reply)
    waiting = _make_async(Handrail.waiting)
    reply = _make_async(Handrail.reply)
    waiting_questions = _make_async(Handrail.waiting_questions)
    todo = _make_async(Handrail.todo)
    repository_map = _make_async(Handrail.repository_map)
    list_files = _make_async(Handrail.list_files)
    memories = _make_async(Handrail.memories)
    would_differ = _make_async(Handrail.would_differ)
    resume = _make_async(Handrail.resume)
    grants = _make_async(Handrail.grants)
    revoke = _make_async(Handrail.revoke)
    notify_person = _make_async(Handrail.notify_person)
    opened_folders = _make_async(Handrail.opened_folders)
    set_client_roots = _make_async(Handrail.set_client_roots)
    begin_conversations = _make_async(Handrail.begin_conversations)
    close_folder = _make_async(Handrail.close_folder)
    set_mode = _make_async(Handrail.set_mode)
    split_streams = _forward(Handrail.split_streams)
    skills = _make_async(Handrail.skills)
    active_skills = _forward(Handrail.active_skills)
    register = _forward(Handrail.register)
    tool_names = _make_async(Handrail.tool_names)
    specs = _forward(Handrail.specs)
    spec = _forward(Handrail.spec)
    why_off = _forward(Handrail.why_off)
    openai_tools = _forward(Handrail.openai_tools)
    anthropic_tools = _forward(Handrail.anthropic_tools)
    mcp_tools = _forward(Handrail.mcp_tools)
    events = _forward(Handrail.events)
    subscribe = _forward(Handrail.subscribe)
    subscribe_to_previews = _forward(Handrail.subscribe_to_previews)
    is_free = _forward(Handrail.is_free)
    new_call_id = _forward(Handrail.new_call_id)
    run_before_audit = _make_async(Handrail.run_before_audit)
    drop_call_id = _forward(Handrail.drop_call_id)
    cancel_call = _forward(Handrail.cancel_call)
    cancel = _forward(Handrail.cancel)
    uncancel = _forward(Handrail.uncancel)
