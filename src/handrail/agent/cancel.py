"""Cancels a turn, closing the calls that it leaves open."""

import asyncio
from asyncio import AbstractEventLoop, CancelledError, Task
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from threading import RLock
from typing import Any, TypeVar

from handrail.agent.transcript import Transcript, build_calls, build_results_message
from handrail.async_api import AsyncHandrail
from handrail.protocol.calls import Parked
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.messages import AssistantMessage
from handrail.protocol.permissions import Answer, Question
from handrail.protocol.results import Attachment, ToolResult

Result = TypeVar("Result")


class TurnCancelledError(Exception):
    """A person who is asked for approval ends the turn instead."""


class TurnCanceller:
    """Runs one turn at a time, which any thread can cancel."""

    def __init__(self, rail: AsyncHandrail) -> None:
        self._rail = rail
        self._lock = RLock()  # a signal handler may cancel while its own thread holds it
        self._running: tuple[AbstractEventLoop, Task[Any]] | None = None
        self._requested = self._ours = self._settling = False

    def cancel(self) -> bool:
        """Cancels the running turn. Returns whether there was one."""
        with self._lock:
            if self._running is None:
                return False
            self._rail.cancel()  # at once: a command ends even if the event loop is busy
            if not self._requested:
                self._requested = True
                self._running[0].call_soon_threadsafe(self._cancel_task, self._running)
            return True

    def _cancel_task(self, asked: tuple[AbstractEventLoop, Task[Any]]) -> None:
        """Does nothing if another turn runs by now."""
        if self._running is asked and not self._settling:
            self._ours = True
            asked[1].cancel()

    async def run_cancellable(
        self, work: Coroutine[Any, Any, Result], settle: Callable[[], Coroutine[Any, Any, Result]]
    ) -> Result:
        """The result of the work, or of `settle` if it was cancelled. A cancellation that is not ours is raised after
        `settle`."""
        task = self._begin()
        refusing = self._rail.conversation.cancelled  # set by another caller, which has to reset it
        try:
            return await work
        except TurnCancelledError:
            self._settling = True
            return await finish_despite_cancel(settle())
        except CancelledError:
            self._settling = True
            settled = await finish_despite_cancel(settle())
            if self._ours and task.uncancel() == 0:
                return settled
            raise
        finally:
            with self._lock:
                self._running = None
                if not refusing and (self._requested or self._settling):
                    self._rail.uncancel()

    def _begin(self) -> Task[Any]:
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("a coroutine must run in a task")
        self._requested = self._ours = self._settling = False
        self._running = asyncio.get_running_loop(), task
        return task


async def finish_despite_cancel(work: Awaitable[Result], stop: Callable[[], object] = lambda: None) -> Result:
    """Waits for work to its end. If it is cancelled meanwhile, `stop` is called, and the
    cancellation raised at the end."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            stop()
    if cancelled is not None:
        task.exception()  # retrieved, so that asyncio does not report it
        raise cancelled
    return task.result()


_MAX_REASON_CHARS = 500
_TALKED_OVER = "The user sent another message before this call. Nothing was run."
_CANCELLED = "The user ended the turn. Nothing was run."


async def start_turn(
    rail: AsyncHandrail, transcript: Transcript, prompt: str, pictures: tuple[Attachment, ...] = (), taken: int = 0
) -> None:
    """Handles a prompt. If a question of the model is open, the prompt is the reply, unless it has pictures. Otherwise
    it starts a turn, and the calls that were parked are refused. `taken`: the last waiting prompt in the text."""
    message = transcript.open_message
    if message is None or not message.calls:
        transcript.add_prompt(prompt, pictures=pictures, taken=taken)
        return
    calls = build_calls(message, transcript.turn)
    outcome = await rail.in_pool(lambda: rail.conversation.refuse(calls, ToolError("CANCELLED", _TALKED_OVER)))
    questions = outcome.questions if isinstance(outcome, Parked) else ()
    if questions and not pictures and await _try_reply(rail, questions[0], prompt):
        rail.conversation.add((), taken=taken)
        return
    reason = f"They said instead: {prompt}"[:_MAX_REASON_CHARS]
    results = await finish_despite_cancel(
        close_calls(rail, message, transcript.turn, ToolError("CANCELLED", _TALKED_OVER), reason)
    )
    transcript.add_prompt(prompt, build_results_message(results), pictures=pictures, taken=taken)


async def _try_reply(rail: AsyncHandrail, question: Question, prompt: str) -> bool:
    """Whether the prompt was accepted as the reply. It is not if only the given options are."""
    try:
        await finish_despite_cancel(rail.reply(question, prompt))
    except UsageError:
        return False
    return True


async def close_open_calls(rail: AsyncHandrail, transcript: Transcript) -> None:
    message = transcript.open_message
    if message is not None and message.calls:
        error = ToolError("CANCELLED", _CANCELLED)
        transcript.add_results(await close_calls(rail, message, transcript.turn, error))


async def refuse_calls(
    rail: AsyncHandrail, transcript: Transcript, message: AssistantMessage, why: str
) -> tuple[ToolResult[Any], ...]:
    """The results of calls that are beyond a limit of the turn."""
    error = ToolError("LIMIT_EXCEEDED", f"{why} Nothing was run.")
    return await finish_despite_cancel(close_calls(rail, message, transcript.turn, error))


async def close_calls(
    rail: AsyncHandrail, message: AssistantMessage, turn: str, error: ToolError, reason: str | None = None
) -> tuple[ToolResult[Any], ...]:
    """The results of a message's calls. Calls that ran keep theirs, parked ones are denied with the reason of the
    person, the rest gets the error. Without a reason the requests expire."""
    calls = build_calls(message, turn)
    was_cancelled = rail.conversation.cancelled
    rail.cancel()  # a denial would let the other calls of its batch run
    try:
        while isinstance(outcome := await rail.in_pool(lambda: rail.conversation.refuse(calls, error)), Parked):
            by = "expiry" if reason is None else None
            await _refuse(rail, outcome, Answer(kind="deny", reason=reason or "the turn was ended", by=by))
        return outcome.results
    finally:
        if not was_cancelled:
            rail.uncancel()


async def _refuse(rail: AsyncHandrail, parked: Parked, answer: Answer) -> None:
    for request in parked.requests:
        with suppress(UsageError):  # answered meanwhile
            await rail.answer(request.id, answer)
    for question in parked.questions:
        with suppress(UsageError):
            await rail.reply(question, None)
