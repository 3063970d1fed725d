"""The loop: ask the model, run its calls, record the results, ask again.

Its state is the journal. After a kill at any moment `go_on` continues from there, and nothing runs twice.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from handrail.agent.cancel import TurnCanceller, close_open_calls, finish_despite_cancel, refuse_calls, start_turn
from handrail.agent.compaction import compact_after_refusal, compact_if_full
from handrail.agent.model_call import OnPiece, Sleep, ask_model, ask_with_retries
from handrail.agent.prompt import prepare_system
from handrail.agent.transcript import Transcript, build_calls
from handrail.agent.turn import (
    Reason,
    Turn,
    TurnLimits,
    build_defect_error,
    build_loop_notes,
    end_turn,
    fail_turn,
    find_cut_off_reason,
    find_ended_turn,
    find_exceeded_limit,
    find_stuck_reason,
    park_turn,
)
from handrail.api import Handrail
from handrail.async_api import AsyncHandrail
from handrail.models.base import Model, ModelError
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import HandrailError, UsageError
from handrail.protocol.messages import AssistantMessage
from handrail.protocol.permissions import ApproverReply, PermissionRequest, Question
from handrail.protocol.results import Attachment
from handrail.protocol.text import render_value
from handrail.runtime.approvals import locate_request

Steering = Callable[[], tuple[str, ...]]
"""Returns the messages that a person typed for the running turn, and forgets them."""
Person = Callable[[Parked], Awaitable[Done | Parked]]
"""Asks a person about a parked batch. Returns its outcome, or what is still open."""


class Agent:
    """A model at work in one session. `model`: a model, or its name such as `anthropic:…`.

    `person` answers permission requests and questions. Without it the turn ends there, and `go_on` continues it once
    they are answered. `on_piece` receives the pieces of an answer. `steering` returns messages for the running turn:
    the model gets them with the next results. `sleep` waits between retries.
    """

    def __init__(
        self,
        rail: AsyncHandrail | Handrail,
        model: Model | str,
        *,
        limits: TurnLimits | None = None,
        person: Person | None = None,
        on_piece: OnPiece | None = None,
        steering: Steering | None = None,
        sleep: Sleep | None = None,
    ) -> None:
        self._rail = rail if isinstance(rail, AsyncHandrail) else AsyncHandrail(rail)
        self._model = _resolve_model(model)
        self._limits = limits or TurnLimits()
        self._person, self._on_piece, self._sleep = person, on_piece, sleep
        self._steering = steering
        self._conversation = self._rail.conversation
        self._transcript = Transcript(self._conversation)
        self._canceller = TurnCanceller(self._rail)
        self._leaves_turn_open = False

    async def run(self, prompt: str, pictures: tuple[Attachment, ...] = ()) -> Turn:
        """Runs a turn: from a prompt until the work is done or a person has to answer."""
        with self._conversation.lease():
            self._transcript.refresh()
            return await self._canceller.run_cancellable(self._run_turn(prompt, pictures), self._settle_cancelled)

    async def run_waiting(self) -> Turn:
        """Runs a turn from the prompts that wait in the session."""
        with self._conversation.lease():
            self._transcript.refresh()
            if not (prompts := self._conversation.list_prompts()):
                raise UsageError("no prompt waits in this session")
            text, taken = "\n\n".join(one.text for one in prompts), prompts[-1].number
            return await self._canceller.run_cancellable(self._run_turn(text, taken=taken), self._settle_cancelled)

    async def go_on(self) -> Turn:
        """Continues the last turn. A turn that has ended is returned as it is."""
        with self._conversation.lease():
            self._transcript.refresh()
            return find_ended_turn(self._transcript) or await self._canceller.run_cancellable(
                self._run_turn(), self._settle_cancelled
            )

    async def compact(self) -> bool:
        """Compacts the older half of the transcript. Returns whether it is shorter now."""
        with self._conversation.lease():
            self._transcript.refresh()
            return await compact_after_refusal(self._rail, self._model, self._transcript, self._limits)

    def run_sync(self, prompt: str) -> Turn:
        """Like `run`, without asyncio. Ctrl-C cancels the turn."""
        from handrail.agent.sync import run_in_thread  # noqa: PLC0415  needs threads

        return run_in_thread(self._rail, lambda: self._run_alone(prompt), self.cancel)

    def cancel(self, *, leave_open: bool = False) -> bool:
        """Cancels the running turn, from any thread. Returns whether there was one.

        `leave_open`: no end is recorded, so `go_on` continues the turn as after a kill.
        """
        self._leaves_turn_open = leave_open
        return self._canceller.cancel()

    async def close(self) -> None:
        """Closes the connections of the model. A later prompt opens them again."""
        await self._model.close()

    async def _run_alone(self, prompt: str) -> Turn:
        try:
            return await self.run(prompt)
        finally:
            await self.close()  # connections belong to this event loop

    async def _run_turn(self, prompt: str | None = None, pictures: tuple[Attachment, ...] = (), taken: int = 0) -> Turn:
        try:
            if prompt is not None:
                await start_turn(self._rail, self._transcript, prompt, pictures, taken)
            self._conversation.begin_turn(self._transcript.turn)
            return await self._work()
        except ModelError as error:
            return fail_turn(self._conversation, self._transcript, error)
        except HandrailError:
            raise
        except Exception as error:  # a defect, of ours or of the model's adapter: the caller gets it
            fail_turn(self._conversation, self._transcript, build_defect_error(error))
            raise

    async def _work(self) -> Turn:
        while True:
            message = self._transcript.open_message or await self._ask_model()
            if not message.calls:
                why = find_cut_off_reason(message, self._limits)
                return self._end("limit" if why else "done", why)
            if why := find_exceeded_limit(self._transcript, self._limits, len(message.calls)):
                self._transcript.add_results(await refuse_calls(self._rail, self._transcript, message, why))
                return self._end("limit", why)
            outcome = await self._run_batch(message)
            if isinstance(outcome, Parked):
                return park_turn(self._conversation, self._transcript, outcome)
            self._transcript.add_results(
                outcome.results, *build_loop_notes(self._transcript, message, outcome, self._limits)
            )
            for text in self._steering() if self._steering is not None else ():
                self._transcript.add_steering(text)
            if self._conversation.cancelled:
                return self._end("cancelled")
            if why := find_stuck_reason(self._transcript, self._limits):
                return self._end("limit", why)
            for waiting in self._conversation.list_prompts():
                self._transcript.add_steering(waiting.text, taken=waiting.number)

    async def _ask_model(self) -> AssistantMessage:
        message = None
        while message is None:
            await prepare_system(self._rail, self._transcript)
            await compact_if_full(self._rail, self._model, self._transcript, self._limits)
            message = await ask_with_retries(self._ask_once, self._conversation, self._limits, self._sleep)
        return message

    async def _ask_once(self) -> AssistantMessage | None:
        try:
            return await ask_model(self._rail, self._model, self._transcript, self._limits, self._on_piece)
        except ModelError as error:
            shorter = error.code == "LIMIT_EXCEEDED" and await compact_after_refusal(
                self._rail, self._model, self._transcript, self._limits
            )
            if not shorter:
                raise
            return None  # ask again, with the compacted transcript

    async def _run_batch(self, message: AssistantMessage) -> Done | Parked:
        """Runs the calls and asks the person. A call that has a result is not run again."""
        calls = build_calls(message, self._transcript.turn)
        while True:
            outcome = await finish_despite_cancel(self._rail.batch(calls), self._rail.cancel)
            if isinstance(outcome, Done) or self._person is None:
                return outcome
            answered = await self._person(outcome)
            if isinstance(answered, Parked) or len(answered.results) == len(calls):
                return answered

    def _end(self, reason: Reason, why: str | None = None) -> Turn:
        if reason == "cancelled" and self._leaves_turn_open:
            return Turn(reason="cancelled")
        return end_turn(self._conversation, self._transcript, reason, why)

    async def _settle_cancelled(self) -> Turn:
        if not self._leaves_turn_open:
            await close_open_calls(self._rail, self._transcript)
        return self._end("cancelled")


def _resolve_model(model: Model | str) -> Model:
    if isinstance(model, str):
        from handrail.models import find_model  # noqa: PLC0415  loads providers

        return find_model(model)
    if not callable(getattr(model, "stream", None)):
        raise UsageError(
            f"a model is a name such as anthropic:…, or has name, window and stream: {render_value(model)}"
        )
    return model


# Approvals, as the loop of `runtime.approvals` for asyncio


class AsyncApprover(Protocol):
    """Asks a person while the event loop goes on."""

    async def ask(self, subject: PermissionRequest | Question, number: int, total: int, /) -> ApproverReply: ...

    def report(self, reply: ApproverReply, outcome: Done | Parked | None, /) -> None:
        """Tells the person the outcome of their answer. None: it was answered elsewhere before."""
        ...


async def ask_in_turn(rail: AsyncHandrail, parked: Parked, approver: AsyncApprover) -> Done | Parked:
    """Asks about each request and question of a parked batch until it is done or one is left for later. Results of
    calls that other processes ran are missing."""
    outcome: Done | Parked = parked
    while isinstance(outcome, Parked) and (subjects := outcome.requests or outcome.questions):
        reply = await approver.ask(subjects[0], *locate_request(parked, outcome))
        settled = await finish_despite_cancel(rail.settle_reply(reply), rail.cancel)
        if settled is None:
            break
        if reply.answer is not None:
            approver.report(reply, settled.answered)
        outcome = settled.rest
    return outcome
