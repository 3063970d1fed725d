"""The calls of one message of a model, as a batch, for the SDKs of providers."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from handrail.async_api import AsyncHandrail
from handrail.frameworks.calls import Rail, answer_request, build_call_id, run_cancellable
from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest, Question, Reply
from handrail.protocol.results import ToolResult

CUT_OFF = "Not run: the message ended before the end of this call. Repeat the call."


class ModelCall(msgspec.Struct, frozen=True):
    """A call as a provider's message has it."""

    id: str
    name: str
    arguments: Any
    is_cut_off: bool = False


class AnsweredCall(msgspec.Struct, frozen=True):
    """A call and its result. None: the message was cut off before the end of the call."""

    call_id: str
    result: ToolResult[Any] | None


class ToolMessages(msgspec.Struct, frozen=True):
    """The messages with the results of all calls, to append after the model's message."""

    messages: list[dict[str, Any]]
    results: tuple[ToolResult[Any], ...]


class WaitingMessage(msgspec.Struct, frozen=True):
    """The calls of a message wait for a person, and none of them ran.

    Answer its requests and questions. To answer later, in any process, drop it: the same message finds them again.
    """

    batch: "MessageCalls"
    requests: tuple[PermissionRequest, ...]
    questions: tuple[Question, ...]

    def answer(
        self, request: PermissionRequest, answer: Answer | AnswerKind, *, reason: str | None = None
    ) -> "ToolMessages | WaitingMessage":
        """Answers one request. The last answer runs the calls."""
        given = answer if isinstance(answer, Answer) else Answer(kind=answer, reason=reason)
        answer_request(self.batch.rail, request, given)
        return self.batch.run()

    async def answer_async(
        self, request: PermissionRequest, answer: Answer | AnswerKind, *, reason: str | None = None
    ) -> "ToolMessages | WaitingMessage":
        """The same beside the event loop."""
        return await self.batch.run_async(lambda: self.answer(request, answer, reason=reason))

    def reply(self, question: Question, said: Reply | str | None) -> "ToolMessages | WaitingMessage":
        """Replies to one question. With asyncio, call it in a thread."""
        self.batch.rail.reply(question, said)
        return self.batch.run()


class MessageCalls:
    """The calls of one message. Each has an id that follows from the message, so running it again repeats nothing."""

    def __init__(
        self,
        rail: Rail,
        message_id: str,
        calls: Sequence[ModelCall],
        build: Callable[[Sequence[AnsweredCall]], list[dict[str, Any]]],
    ) -> None:
        self.rail = rail.rail if isinstance(rail, AsyncHandrail) else rail
        self._loop_side = rail if isinstance(rail, AsyncHandrail) else AsyncHandrail(rail)
        self._calls, self._build = tuple(calls), build
        self._batch = tuple(
            ToolCall(
                tool_call_id=build_call_id(call.name, call.arguments, f"{message_id} {number} {call.id}"),
                name=call.name,
                args=call.arguments,
                trace_id=message_id,
                timestamp=datetime.now(UTC),
                provider_call_id=call.id,
                message_id=message_id,
            )
            for number, call in enumerate(calls)
            if not call.is_cut_off
        )

    def run(self) -> ToolMessages | WaitingMessage:
        outcome = self.rail.batch(self._batch) if self._batch else Done(results=())
        if isinstance(outcome, Parked):
            return WaitingMessage(self, outcome.requests, outcome.questions)
        left = iter(outcome.results)
        answered = [AnsweredCall(call.id, None if call.is_cut_off else next(left)) for call in self._calls]
        return ToolMessages(self._build(answered), outcome.results)

    async def run_async(
        self, work: Callable[[], ToolMessages | WaitingMessage] | None = None
    ) -> ToolMessages | WaitingMessage:
        """Works beside the event loop. Cancelling it cancels the calls."""
        return await run_cancellable(self._loop_side, work or self.run, [call.tool_call_id for call in self._batch])
