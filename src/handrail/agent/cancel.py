"""Cancels a turn."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from handrail.agent.transcript import Transcript, build_calls, build_results_message
from handrail.async_api import AsyncHandrail
from handrail.protocol.calls import Parked
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.messages import AssistantMessage
from handrail.protocol.permissions import Answer, Question
from handrail.protocol.results import Attachment, ToolResult

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task


# § [agent.stopping] Cancel: from any thread, at any moment; what runs is ended, and what is open is closed before
# § anybody hears of it.

Result = TypeVar("Result")


class TurnCanceller:
    """Watches over one turn at a time."""

    def __init__(self, rail: AsyncHandrail) -> None:
        self._rail = rail
        self._lock = RLock()  # a signal's handler may cancel while its thread holds it
        self._running: tuple[AbstractEventLoop, Task[Any]] | None = None
        self._asked = self._ours = self._settling = False

    def cancel(self) -> bool:
        """Ends the turn that is at work; whether there was one."""
        with self._lock:
            if self._running is None:
                return False
            self._rail.cancel()  # at once: a command is ended even while the event loop is busy
            if not self._asked:
                self._asked = True
                self._running[0].call_soon_threadsafe(self._cancel_task, self._running)
            return True

    def _cancel_task(self, asked: "tuple[AbstractEventLoop, Task[Any]]") -> None:
        """Unless the turn has ended meanwhile, and another one is at work."""
        if self._running is asked and not self._settling:
            self._ours = True
            asked[1].cancel()

    async def run_cancellable(
        self, work: Coroutine[Any, Any, Result], settle: Callable[[], Coroutine[Any, Any, Result]]
    ) -> Result:
        """What comes of the work; where it is cancelled, what comes of `settle`. A cancellation that is not ours goes
        on to whoever wanted it, once all is settled."""
        from asyncio import CancelledError  # noqa: PLC0415  who is here has it

        task = self._begin()
        refusing = self._rail.conversation.cancelled  # somebody else said so, and has to take it back
        try:
            return await work
        except CancelledError:
            self._settling = True
            settled = await finish_despite_cancel(settle())
            if self._ours and task.uncancel() == 0:
                return settled
            raise
        finally:
            with self._lock:
                self._running = None
                if not refusing and (self._asked or self._settling):
                    self._rail.uncancel()

    def _begin(self) -> "Task[Any]":
        import asyncio  # noqa: PLC0415  as above

        task = asyncio.current_task()
        if task is None:
            raise AssertionError("a coroutine runs in a task")
        self._asked = self._ours = self._settling = False
        self._running = asyncio.get_running_loop(), task
        return task


async def finish_despite_cancel(work: Awaitable[Result], stop: Callable[[], object] = lambda: None) -> Result:
    """Waits for work that must not be left alone. Cancelled meanwhile, it is told to stop, and waited for all the
    same."""
    import asyncio  # noqa: PLC0415  as above

    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            stop()
    if cancelled is not None:
        task.exception()  # looked at, so that nobody reports it as forgotten
        raise cancelled
    return task.result()


# § [agent.settling] Brings what is open to an end: every call has its result, whoever it waited for.

_MAX_REASON_CHARS = 500
_INSTEAD = "The person said something else before this call was made. Nothing was run."
_CANCELLED = "The person ended the turn. Nothing was run."


async def start_turn(
    rail: AsyncHandrail, transcript: Transcript, prompt: str, pictures: tuple[Attachment, ...] = ()
) -> None:
    """Takes what the person says: as the reply, where the model asked something; otherwise it begins a turn, and what
    still waited for the person was refused by it. What has pictures is no reply: those are words."""
    message = transcript.open_message
    if message is None or not message.calls:
        transcript.add_prompt(prompt, pictures=pictures)
        return
    calls = build_calls(message, transcript.turn)
    outcome = await rail.in_pool(lambda: rail.conversation.refuse(calls, ToolError("CANCELLED", _INSTEAD)))
    asked = outcome.questions if isinstance(outcome, Parked) else ()
    if asked and not pictures and await _replied(rail, asked[0], prompt):
        return  # the turn goes on with it
    reason = f"They said instead: {prompt}"[:_MAX_REASON_CHARS]
    results = await finish_despite_cancel(
        close_calls(rail, message, transcript.turn, ToolError("CANCELLED", _INSTEAD), reason)
    )
    transcript.add_prompt(prompt, build_results_message(results), pictures=pictures)


async def _replied(rail: AsyncHandrail, question: Question, prompt: str) -> bool:
    """Whether it is a reply: not where it is none of the options, and only they are welcome."""
    try:
        await finish_despite_cancel(rail.reply(question, prompt))
    except UsageError:
        return False
    return True


async def close_open_calls(rail: AsyncHandrail, transcript: Transcript) -> None:
    """Closes the calls of a turn that was cancelled."""
    message = transcript.open_message
    if message is not None and message.calls:
        error = ToolError("CANCELLED", _CANCELLED)
        transcript.add_results(await close_calls(rail, message, transcript.turn, error, "the turn was ended"))


async def refuse_calls(
    rail: AsyncHandrail, transcript: Transcript, message: AssistantMessage, why: str
) -> tuple[ToolResult[Any], ...]:
    """The results of calls that the turn must not make any more."""
    error = ToolError("LIMIT_EXCEEDED", f"{why} Nothing was run.")
    return await finish_despite_cancel(close_calls(rail, message, transcript.turn, error, "the turn was ended"))


async def close_calls(
    rail: AsyncHandrail, message: AssistantMessage, turn: str, error: ToolError, reason: str
) -> tuple[ToolResult[Any], ...]:
    """The results of a message's calls: those that were made keep theirs, what waits for a yes is refused for this
    reason, and the rest gets this error."""
    calls = build_calls(message, turn)
    was_cancelled = rail.conversation.cancelled
    rail.cancel()  # a refusal lets the other calls of its batch run; here nothing shall
    try:
        while isinstance(outcome := await rail.in_pool(lambda: rail.conversation.refuse(calls, error)), Parked):
            await _refuse(rail, outcome, reason)
        return outcome.results
    finally:
        if not was_cancelled:
            rail.uncancel()


async def _refuse(rail: AsyncHandrail, parked: Parked, reason: str) -> None:
    for request in parked.requests:
        with suppress(UsageError):  # answered meanwhile
            await rail.answer(request.id, Answer(kind="deny", reason=reason))
    for question in parked.questions:
        with suppress(UsageError):
            await rail.reply(question, None)
