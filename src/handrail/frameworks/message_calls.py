"""The calls of one message of a model, as a batch, for the SDKs of providers."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from handrail.frameworks.calls import (
    Rail,
    SessionWorker,
    answer_request,
    build_call_id,
    list_images,
    note_begin,
    render_result,
)
from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest, Question, Reply
from handrail.protocol.results import Attachment, ToolResult

CUT_OFF = "Not run: the message ended before the end of this call. Repeat the call."


class AnsweredCall(msgspec.Struct, frozen=True):
    """A call and its result. None: the message was cut off before the end of the call."""

    call_id: str
    result: ToolResult[Any] | None

    @property
    def text(self) -> str:
        return CUT_OFF if self.result is None else render_result(self.result)

    @property
    def images(self) -> list[Attachment]:
        return [] if self.result is None else list_images(self.result)


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
        return await self.batch.run_in_pool(lambda: self.answer(request, answer, reason=reason))

    def reply(self, question: Question, said: Reply | str | None) -> "ToolMessages | WaitingMessage":
        """Replies to one question. With asyncio, call it in a thread."""
        self.batch.rail.reply(question, said)
        return self.batch.run()


class MessageCalls(SessionWorker):
    """The calls of one message. Each has an id that follows from the message, so running it again repeats nothing."""

    def __init__(
        self,
        rail: Rail,
        message_id: str,
        calls: Sequence[tuple[str, str, Any]],
        build: Callable[[Sequence[AnsweredCall]], list[dict[str, Any]]],
        *,
        is_whole: bool,
    ) -> None:
        """`calls`: id, name and arguments. The last one does not run unless the message is whole."""
        super().__init__(rail)
        self._ids, self._build = [key for key, _, _ in calls], build
        self._batch = tuple(
            ToolCall(
                tool_call_id=build_call_id(name, arguments, f"{message_id} {number} {key}"),
                name=name,
                args=arguments,
                trace_id=message_id,
                timestamp=datetime.now(UTC),
                provider_call_id=key,
                message_id=message_id,
            )
            for number, (key, name, arguments) in enumerate(calls if is_whole else calls[:-1])
        )

    def run(self) -> ToolMessages | WaitingMessage:
        for call in self._batch:
            note_begin(call.tool_call_id)
        outcome = self.rail.batch(self._batch) if self._batch else Done(results=())
        if isinstance(outcome, Parked):
            return WaitingMessage(self, outcome.requests, outcome.questions)
        answered = list(map(AnsweredCall, self._ids, [*outcome.results, None]))
        return ToolMessages(self._build(answered), outcome.results)
