"""The loop: model → batch → permission → execute → persist → model. It is a function of the journal: whatever moment
it is killed at, `go_on` goes on from what is written down, and nothing is done twice."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from handrail.agent.answering import ask_model
from handrail.agent.compacting import compact_if_full
from handrail.agent.limits import TurnLimits
from handrail.agent.prompting import prepare_system
from handrail.agent.talk import Talk, calls_of
from handrail.agent.turn import Reason, Turn
from handrail.async_rail import AsyncHandrail
from handrail.models.model import Model, ModelError
from handrail.protocol.batch import Done, Parked
from handrail.protocol.event import End, Error
from handrail.protocol.message import AssistantMessage

Person = Callable[[Parked], Awaitable[Done | Parked]]
"""Puts what waits to a person; what came of it, or what still waits."""


class Agent:
    """A model at work in one session."""

    def __init__(
        self,
        rail: AsyncHandrail,
        model: Model,
        *,
        limits: TurnLimits | None = None,
        person: Person | None = None,
    ) -> None:
        self._rail, self._model, self._person = rail, model, person
        self._limits = limits or TurnLimits()
        self._talk = Talk(rail.conversation)

    async def run(self, prompt: str) -> Turn:
        """A turn: from what the person says to where nothing is left to do, or somebody has to answer."""
        self._talk.add_prompt(prompt)
        return await self.go_on()

    async def go_on(self) -> Turn:
        """Goes on with the last turn, wherever it is."""
        self._rail.conversation.begin_turn(self._talk.turn)
        try:
            return await self._work()
        except ModelError as error:
            told = {"code": error.code, "message": error.message, "retryable": error.retryable}
            self._rail.conversation.tell((Error, told))
            return Turn(reason="error", code=error.code, message=error.message)

    async def _work(self) -> Turn:
        while True:
            message = self._talk.open_message or await self._ask_model()
            if not message.calls:
                return self._end("done", message)
            outcome = await self._rail.batch(calls_of(message, self._talk.turn, datetime.now(UTC)))
            if isinstance(outcome, Parked) and self._person is not None:
                outcome = await self._person(outcome)
            if isinstance(outcome, Parked):
                return self._end("question" if outcome.questions else "parked", message, outcome)
            self._talk.add_results(outcome.results)

    async def _ask_model(self) -> AssistantMessage:
        await prepare_system(self._rail, self._talk)
        await compact_if_full(self._rail, self._model, self._talk, self._limits)
        return await ask_model(self._rail, self._model, self._talk)

    def _end(self, reason: Reason, message: AssistantMessage, parked: Parked | None = None) -> Turn:
        turn = Turn(
            reason=reason,
            text=message.text,
            requests=parked.requests if parked else (),
            questions=parked.questions if parked else (),
        )
        told = {"reason": reason, "calls": turn.calls, "files_changed": turn.files_changed, "text": turn.text}
        self._rail.conversation.tell((End, told))
        return turn
