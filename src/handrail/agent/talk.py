"""The talk with the model: what was said, what is still open, and what the model is sent of it."""

from typing import Any

from handrail.agent.compaction.sending import sent
from handrail.protocol.call import ToolCall
from handrail.protocol.event import User
from handrail.protocol.message import (
    AssistantMessage,
    CallResult,
    Message,
    ResultsMessage,
    SystemMessage,
    UserMessage,
)
from handrail.protocol.result import ToolResult
from handrail.runtime.conversation import Conversation
from handrail.store.identity import new_id
from handrail.store.journal import Draft
from handrail.store.messages import Numbered


class Talk:
    """The messages of one session, as the journal has them."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.messages: list[Numbered] = conversation.messages()

    def add(self, message: Message, *drafts: Draft) -> None:
        """Writes a message down, with the events that belong to it."""
        self._conversation.add((message,), *drafts)
        self.messages += self._conversation.messages(self.messages[-1].number if self.messages else 0)

    def add_prompt(self, text: str) -> None:
        """Begins a turn with what the person says."""
        message_id = new_id("m")
        self.add(UserMessage(message_id=message_id, text=text), (User, {"message_id": message_id, "text": text}))

    @property
    def turn(self) -> str:
        """The id of the prompt that everything since belongs to."""
        said = (one.message for one in reversed(self.messages))
        return next((one.message_id for one in said if isinstance(one, UserMessage) and not one.by_loop), "")

    @property
    def last(self) -> Message | None:
        """The last message."""
        return self.messages[-1].message if self.messages else None

    @property
    def open_message(self) -> AssistantMessage | None:
        """The model's message whose calls have no results yet."""
        last = self.last
        return last if isinstance(last, AssistantMessage) and last.calls else None

    def add_results(self, results: tuple[ToolResult[Any], ...]) -> None:
        """Writes down what the model is told of the results of its calls."""
        self.add(ResultsMessage(results=tuple(map(_told, results))))

    @property
    def system(self) -> SystemMessage | None:
        """The system prompt in force."""
        said = (one.message for one in reversed(self.messages))
        return next((one for one in said if isinstance(one, SystemMessage)), None)

    def shown(self) -> tuple[Message, ...]:
        """What the model is sent: all of it, or the last summary and what came after."""
        return sent(self.messages)


def calls_of(message: AssistantMessage, turn: str, time: Any) -> list[ToolCall]:
    """The calls of a message as the runtime takes them: always the same for the same message."""
    return [
        ToolCall(
            tool_call_id=part.tool_call_id,
            name=part.name,
            args=part.args,
            trace_id=turn,
            timestamp=time,
            provider_call_id=part.provider_call_id,
            message_id=message.message_id,
        )
        for part in message.calls
    ]


def _told(result: ToolResult[Any]) -> CallResult:
    return CallResult(
        tool_call_id=result.tool_call_id,
        name=result.name,
        ok=result.ok,
        content=result.content,
        attachments=result.attachments,
    )
