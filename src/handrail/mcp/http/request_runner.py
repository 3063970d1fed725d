"""Runs the calls of HTTP requests in threads beside the event loop."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from threading import get_ident
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from handrail.mcp.approval_watch import POLL_SECONDS, ApprovalWatch
from handrail.mcp.calls import ClientCalls, Outcome, ParkedCall, UnansweredCall
from handrail.mcp.elicitation import apply_form, build_form
from handrail.mcp.http.middleware import Context, get_reply, get_session_id
from handrail.mcp.protocol import Caller, Level
from handrail.mcp.request_state import build_input_required
from handrail.mcp.results import EventMessage, build_message
from handrail.mcp.sessions import THREAD_CONNECTION
from handrail.mcp.workers import Workers, end_all
from handrail.protocol.events import Event
from handrail.protocol.results import ToolResult

MAX_EFFECT_CALLS, MAX_READ_CALLS = 8, 16
"""Calls of one client at once, with effects or without. Calls with effects take turns in a session anyway, so they do
not keep the others waiting."""
_MAX_CLERKS = 8
"""Threads for short work: to poll, to open a session, to release a call."""
_STOP_SECONDS = 0.05
_WITHDRAW_SECONDS = 0.5
_MAX_QUEUED_MESSAGES = 256
"""Messages for a client that reads slowly. Further ones are dropped."""

Returned = TypeVar("Returned")
Found = TypeVar("Found", bound=Outcome | dict[str, Any])
Settled = ToolResult[Any] | ParkedCall | dict[str, Any]
"""A settled call. A dictionary is the form for a modern client."""
Tell = Callable[[EventMessage], None]


def _ignore(*_: object) -> None:
    pass


class CallThreads:
    """The threads of one event loop. They do not keep the process alive: a tool may never end."""

    def __init__(self) -> None:
        self._clerks = Workers(_ignore, _MAX_CLERKS)
        self._by_client: dict[tuple[str, bool], Workers] = {}
        self._abandoned = False

    def get_workers(self, client: str, *, has_effects: bool) -> Workers:
        count = MAX_EFFECT_CALLS if has_effects else MAX_READ_CALLS
        return self._by_client.setdefault((client, has_effects), Workers(_ignore, count))

    async def run(
        self, work: Callable[[], Returned], stop: Callable[[], object] = _ignore, workers: Workers | None = None
    ) -> Returned:
        """Runs some work. A cancelled caller stops it, and waits for its end: nothing runs on after its request."""
        future = Future[Returned]()
        (workers or self._clerks).add(lambda: _complete(work, future))
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._stop(future, waiting, stop)
            raise

    def abandon(self) -> None:
        """The server ends: from now on no caller waits for the end of its work."""
        self._abandoned = True

    def end(self, seconds: float) -> bool:
        """False if some threads still run after this time."""
        return end_all((*self._by_client.values(), self._clerks), seconds)

    async def _stop(
        self, future: Future[Returned], waiting: asyncio.Future[Returned], stop: Callable[[], object]
    ) -> None:
        """Calls `stop` until the work ends. Work that was about to begin may miss the first call."""
        if future.cancel():
            return
        while not waiting.done() and not self._abandoned:
            stop()
            await asyncio.wait([waiting], timeout=_STOP_SECONDS)
        if waiting.done() and not waiting.cancelled():
            waiting.exception()  # otherwise asyncio warns that the exception was never retrieved


def _complete(work: Callable[[], Returned], future: Future[Returned]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)


class HeldCall:
    """The claimed call of one request, if it has one. At the end the call is delivered, or released for the next same
    call."""

    def __init__(self, calls: ClientCalls) -> None:
        self._calls = calls
        self._held: ToolResult[Any] | UnansweredCall | None = None
        self.is_offered = False
        """Whether the held result is the answer to the request."""

    @property
    def is_empty(self) -> bool:
        return self._held is None

    def hold(self, found: Found) -> Found:
        """Remembers the outcome of some work, in its thread. Parked calls and forms are not held."""
        self._held = None
        if isinstance(found, UnansweredCall) or (
            isinstance(found, ToolResult) and self._calls.has_claimed(found.tool_call_id)
        ):
            self._held = found
        return found

    def settle(self, reached: bool) -> None:
        """Ends with the request. `reached`: whether its answer reached the client."""
        if isinstance(self._held, UnansweredCall):
            self._calls.release(self._held.call_id)
        elif self._held is not None:
            self._calls.settle_delivery(self._held, reached=reached and self.is_offered)


class RequestRunner:
    """One request with its call: runs it, reports its progress, and asks the user about it."""

    def __init__(
        self, context: Context, caller: Caller, held: HeldCall, calls: ClientCalls, threads: CallThreads, tell: Tell
    ) -> None:
        self.call_ids: set[str] = set()
        """The ids of its calls. An answered call runs under its old id, together with others of its batch. These are
        recognised by the thread that they begin in."""
        self._context = context
        self._caller = caller
        self._held = held
        self._calls = calls
        self._threads = threads
        spec = calls.rail.spec((context.params or {})["name"])
        has_effects = spec is not None and bool(spec.side_effects)
        self._workers = threads.get_workers(calls.rail.session_id, has_effects=has_effects)
        self._tell = tell
        self._reply = get_reply(context)
        self._until = time.monotonic() + calls.rail.permission_wait

    async def run(self, work: Callable[[], Found], call_id: str) -> Found:
        """Runs work that begins, answers or parks a call, and holds its outcome."""
        self.call_ids.add(call_id)
        return await self._threads.run(lambda: self._follow(work), self._cancel, self._workers)

    async def settle(self, outcome: Outcome) -> Settled:
        """Asks the user by a form or a round, or waits for an answer from elsewhere, until the call is settled."""
        while isinstance(outcome, UnansweredCall):
            call = outcome
            if not self._caller.elicits or not call.revisions:
                outcome = await self._wait(call)
            elif self._caller.modern:
                return await self.run(
                    lambda call=call: build_input_required(self._calls, call, self._caller), call.call_id
                )
            else:
                outcome = await self._ask_by_form(call)
        return outcome

    def _follow(self, work: Callable[[], Found]) -> Found:
        thread = get_ident()
        THREAD_CONNECTION.id = get_session_id(self._context)

        def hear(event: Event) -> None:
            call_id: str | None = getattr(event, "tool_call_id", None)
            if call_id is not None and get_ident() == thread:
                self.call_ids.add(call_id)
            is_own = call_id in self.call_ids if call_id is not None else get_ident() == thread
            if is_own and (message := build_message(event)) is not None:
                self._tell(message)

        unsubscribe = self._calls.rail.subscribe(hear)
        try:
            return self._held.hold(work())
        finally:
            unsubscribe()

    def _cancel(self) -> None:
        for call_id in tuple(self.call_ids):
            self._calls.rail.cancel_call(call_id)

    def _remind(self, text: str) -> None:
        self._tell(EventMessage("info", text, is_progress=True))

    async def _wait(self, call: UnansweredCall) -> Outcome:
        """Waits for an answer from elsewhere, as long as the client does."""
        watch = await self._threads.run(lambda: ApprovalWatch(self._calls, call))
        await self._threads.run(watch.notify_desktop)
        while time.monotonic() < self._until and not self._reply.is_lost:
            watch.remind(self._remind)
            if await self._threads.run(watch.has_changed):
                return await self.run(lambda: self._calls.poll(call), call.call_id)
            await asyncio.sleep(POLL_SECONDS)
        return await self._park(call)

    async def _ask_by_form(self, call: UnansweredCall) -> Outcome:
        """Shows a form until it comes back, there is an answer from elsewhere, or the client is gone."""
        form = asyncio.ensure_future(self._send_form(call))
        try:
            watch = await self._threads.run(lambda: ApprovalWatch(self._calls, call))
            while not (await asyncio.wait([form], timeout=POLL_SECONDS))[0]:
                watch.remind(self._remind)
                if self._reply.is_lost:
                    return await self._park(call)
                if await self._threads.run(watch.has_changed):
                    return await self.run(lambda: self._calls.poll(call), call.call_id)
        finally:
            await wait_until_withdrawn(form)
        reply = form.result()
        if reply is None:
            return await self._wait(call)
        return await self.run(lambda: apply_form(self._calls, call, reply), call.call_id)

    async def _send_form(self, call: UnansweredCall) -> dict[str, Any] | None:
        """The form as it came back. None if the client failed to show it."""
        params = types.ElicitRequestFormParams.model_validate(build_form(call, self._caller))
        metadata = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            reply = await self._context.session.send_request(
                types.ElicitRequest(params=params), types.ElicitResult, metadata=metadata
            )
        except (MCPError, ValidationError):
            return None
        return reply.model_dump(mode="json", exclude_none=True)

    async def _park(self, call: UnansweredCall) -> ParkedCall:
        return await self.run(lambda: self._calls.park(call), call.call_id)


async def wait_until_withdrawn(form: asyncio.Future[Any], seconds: float = _WITHDRAW_SECONDS) -> None:
    """Withdraws an open form. The SDK would try for much longer, also while the server ends."""
    if form.done():
        return
    form.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait([form], timeout=seconds)


@asynccontextmanager
async def open_messages(context: Context, least: Level | None) -> AsyncGenerator[Tell]:
    """Sends progress and log messages about a request. Any thread may tell them. All are sent at the end."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[EventMessage | None](_MAX_QUEUED_MESSAGES)

    def add(message: EventMessage) -> None:
        if not queue.full():
            queue.put_nowait(message)

    def tell(message: EventMessage) -> None:
        loop.call_soon_threadsafe(add, message)

    sender = asyncio.ensure_future(_send_messages(context, queue, least))
    try:
        yield tell
        await queue.put(None)
        await sender
    finally:
        sender.cancel()


async def _send_messages(context: Context, queue: asyncio.Queue[EventMessage | None], least: Level | None) -> None:
    count = 0
    while (message := await queue.get()) is not None:
        if message.is_progress:
            count += 1
            await context.session.report_progress(count, message=message.text)
        if least is not None and message.reaches(least):
            await send_log(context, message)


async def send_log(context: Context, message: EventMessage) -> None:
    params = types.LoggingMessageNotificationParams(level=message.level, logger="handrail", data=message.data)
    notification = types.LoggingMessageNotification(params=params)
    await context.session.send_notification(notification, related_request_id=context.request_id)
