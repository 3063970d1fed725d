"""AsyncHandrail: the library for asyncio."""

import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from handrail.api import CLOSED, Handrail
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from handrail.runtime.conversation import Conversation
    from handrail.store.approvals import DeferredCalls


Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def _hopped(
    method: Callable[Concatenate[Handrail, Parameters], Returned],
) -> Callable[Concatenate["AsyncHandrail", Parameters], Awaitable[Returned]]:
    """The same method, run in the pool."""

    async def hop(self: "AsyncHandrail", *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        return await self.in_pool(lambda: method(self.rail, *args, **kwargs))

    hop.__doc__ = method.__doc__
    hop.__name__ = method.__name__
    return hop


def _passed_on(
    method: Callable[Concatenate[Handrail, Parameters], Returned],
) -> Callable[Concatenate["AsyncHandrail", Parameters], Returned]:
    """The same method as it is: it waits for nothing, once `look_at_servers` has waited for other servers."""

    def pass_on(self: "AsyncHandrail", *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        return method(self.rail, *args, **kwargs)

    pass_on.__doc__ = method.__doc__
    pass_on.__name__ = method.__name__
    return pass_on


class AsyncHandrail:
    """Handrail for asyncio: the same methods, each run in a bounded pool of threads.

    So nobody is asked at the terminal: without `on_permission`, a call that needs a yes waits. Many of them may share
    a `pool`, which is then theirs to end.

    In the place of a workspace there may be a Handrail: this is the same session then, its work goes to the event
    loop's own pool, and whoever opened the Handrail closes it.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str] | Handrail,
        *,
        threads: int = 8,
        pool: "Executor | None" = None,
        **options: Any,
    ) -> None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  who uses Handrail does not pay for it

        self._lent = isinstance(workspace, Handrail)
        if self._lent and options:
            given = ", ".join(sorted(options))
            raise UsageError(f"{given} cannot be given with a Handrail, which is open already; give it to Handrail")
        self.rail = workspace if isinstance(workspace, Handrail) else Handrail(workspace, **options)
        self._own = None if pool or self._lent else ThreadPoolExecutor(threads, thread_name_prefix="handrail")
        self._pool: Executor | None = pool or self._own
        self._closed = False

    @classmethod
    async def open(cls, workspace: str | os.PathLike[str], **options: Any) -> Self:
        """Opens a session in a thread. The constructor holds up the event loop while it opens one, which counts where
        there are many. `options` are those of the constructor."""
        import asyncio  # noqa: PLC0415  who is here has it; who uses Handrail does not pay for it

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
        """Runs work in the pool. A cancelled wait does not undo it: the call goes on to its result in the journal."""
        import asyncio  # noqa: PLC0415  who is here has it; who uses Handrail does not pay for it

        if self._closed:
            raise UsageError(CLOSED)
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    @contextmanager
    def working_in(self, pool: "Executor") -> Generator[None]:
        """While it lasts, calls run in another pool."""
        before, self._pool = self._pool, pool
        try:
            yield
        finally:
            self._pool = before

    async def look_at_servers(self) -> None:
        """Asks other servers what they list, where that may have changed. Without it `specs` would do so, and hold up
        the event loop meanwhile."""
        if self.rail.has_servers:
            await self.in_pool(self.rail.look_at_servers)
        else:
            self.rail.look_at_servers()  # only says whether it is closed

    async def end_session(self) -> None:
        """Ends what the session left running, forgets it, and closes."""
        import asyncio  # noqa: PLC0415  as above

        await asyncio.to_thread(self._end, self.rail.end_session)

    async def close(self) -> None:
        """Waits for what is running and ends the session's work here. The loop goes on meanwhile."""
        import asyncio  # noqa: PLC0415  as above

        await asyncio.to_thread(self._end, self.rail.close)

    def _end(self, close: Callable[[], None]) -> None:
        self._closed = not self._lent
        if self._own is not None:
            self._own.shutdown()
        if not self._lent:
            close()

    @property
    def session_id(self) -> str:
        """The id of this session."""
        return self.rail.session_id

    @property
    def workspace(self) -> str:
        """The folder that relative paths start from."""
        return self.rail.workspace

    @property
    def has_servers(self) -> bool:
        """Whether there are other servers."""
        return self.rail.has_servers

    @property
    def mode(self) -> Mode:
        """The mode that is in force."""
        return self.rail.mode

    @property
    def conversation(self) -> "Conversation":
        """The transcript of this session, for the code that runs the loop."""
        return self.rail.conversation

    @property
    def left_calls(self) -> "DeferredCalls":
        """The calls of this session that were left waiting, for faces whose callers know no ids of ours."""
        return self.rail.left_calls

    read = _hopped(Handrail.read)
    write = _hopped(Handrail.write)
    edit = _hopped(Handrail.edit)
    multi_edit = _hopped(Handrail.multi_edit)
    apply_patch = _hopped(Handrail.apply_patch)
    delete = _hopped(Handrail.delete)
    find = _hopped(Handrail.find)
    grep = _hopped(Handrail.grep)
    ls = _hopped(Handrail.ls)
    exec = _hopped(Handrail.exec)
    process = _hopped(Handrail.process)
    processes = _hopped(Handrail.processes)
    raw_output = _hopped(Handrail.raw_output)
    changes = _hopped(Handrail.changes)
    diff = _hopped(Handrail.diff)
    numbered_diff = _hopped(Handrail.numbered_diff)
    turn_diff = _hopped(Handrail.turn_diff)
    undo = _hopped(Handrail.undo)
    preview_undo = _hopped(Handrail.preview_undo)
    redo = _hopped(Handrail.redo)
    line_origin = _hopped(Handrail.line_origin)
    call = _hopped(Handrail.call)
    batch = _hopped(Handrail.batch)
    answer = _hopped(Handrail.answer)
    fork_session = _hopped(Handrail.fork_session)
    retry = _hopped(Handrail.retry)
    refresh = _hopped(Handrail.refresh)
    outdated = _hopped(Handrail.outdated)
    is_pending = _hopped(Handrail.is_pending)
    try_answer = _hopped(Handrail.try_answer)
    waiting = _hopped(Handrail.waiting)
    reply = _hopped(Handrail.reply)
    waiting_questions = _hopped(Handrail.waiting_questions)
    todo = _hopped(Handrail.todo)
    memories = _hopped(Handrail.memories)
    would_differ = _hopped(Handrail.would_differ)
    resume = _hopped(Handrail.resume)
    grants = _hopped(Handrail.grants)
    revoke = _hopped(Handrail.revoke)
    opened_folders = _hopped(Handrail.opened_folders)
    set_client_roots = _hopped(Handrail.set_client_roots)
    begin_conversations = _hopped(Handrail.begin_conversations)
    close_folder = _hopped(Handrail.close_folder)
    set_mode = _hopped(Handrail.set_mode)
    skills = _hopped(Handrail.skills)
    active_skills = _passed_on(Handrail.active_skills)
    tool_names = _hopped(Handrail.tool_names)
    specs = _passed_on(Handrail.specs)
    spec = _passed_on(Handrail.spec)
    why_off = _passed_on(Handrail.why_off)
    openai_tools = _passed_on(Handrail.openai_tools)
    anthropic_tools = _passed_on(Handrail.anthropic_tools)
    mcp_tools = _passed_on(Handrail.mcp_tools)
    events = _passed_on(Handrail.events)
    subscribe = _passed_on(Handrail.subscribe)
    is_free = _passed_on(Handrail.is_free)
    new_call_id = _passed_on(Handrail.new_call_id)
    drop_call_id = _passed_on(Handrail.drop_call_id)
    cancel_call = _passed_on(Handrail.cancel_call)
    cancel = _passed_on(Handrail.cancel)
    uncancel = _passed_on(Handrail.uncancel)
