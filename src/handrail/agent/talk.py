"""The transcript of the session: what was said, what is still open, and what the model is sent of it."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from handrail.agent.compaction.measuring import TokenEstimates
from handrail.agent.compaction.sending import select_context_messages
from handrail.protocol.calls import ToolCall
from handrail.protocol.events import End, Error, User
from handrail.protocol.messages import (
    AssistantMessage,
    CallResult,
    Message,
    ResultsMessage,
    SystemMessage,
    UserMessage,
)
from handrail.protocol.results import Attachment, ToolResult, render_for_model
from handrail.protocol.wire import escape_surrogates
from handrail.runtime.conversation import Conversation
from handrail.store.journal import PendingEvent
from handrail.store.state_dir import make_id
from handrail.store.transcript import NumberedMessage


class TurnUsage(msgspec.Struct, frozen=True):
    """What a turn has used and left up to now."""

    calls: int
    files_changed: tuple[str, ...]
    tokens: int


class Transcript:
    """The messages of one session, as the journal has them."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.messages: list[NumberedMessage] = []
        self.system: SystemMessage | None = None
        """The system prompt in force."""
        self.turn = ""
        """The id of the prompt that everything since belongs to."""
        self._begin = 0
        """How many messages there are up to that prompt."""
        self.token_estimates = TokenEstimates()
        self.last_turn_event: User | End | Error | None = None
        """Where the last turn was when the transcript was last read; None once something was added."""
        self.refresh()

    def refresh(self) -> None:
        """Reads what others have added."""
        self._read_on()
        self.last_turn_event = self._conversation.last_turn_event()

    def add(self, message: Message, *drafts: PendingEvent) -> None:
        """Writes a message down, with the events that belong to it."""
        self.add_all((message,), *drafts)

    def add_all(self, messages: tuple[Message, ...], *drafts: PendingEvent) -> None:
        """Writes messages down that stand or fall together."""
        self._conversation.add(messages, *drafts)
        self._read_on()
        self.last_turn_event = None

    def add_prompt(self, text: str, *before: Message, pictures: tuple[Attachment, ...] = ()) -> None:
        """Begins a turn with what the person says; `before`: what closes the last one."""
        said = UserMessage(message_id=make_id("m"), text=escape_surrogates(text), attachments=pictures)
        self.add_all((*before, said), (User, {"message_id": said.message_id, "text": said.text}))

    def add_results(self, results: tuple[ToolResult[Any], ...], *notes: UserMessage) -> None:
        """Writes down what the model is told of the results of its calls, and what the loop has to say to them."""
        self.add_all((build_results_message(results), *notes))

    @property
    def turn_messages(self) -> list[Message]:
        """What was said since the person's last prompt."""
        return [one.message for one in self.messages[self._begin :]]

    @property
    def usage(self) -> TurnUsage:
        """What the turn has used and left."""
        said = self.turn_messages
        results = [one for message in said if isinstance(message, ResultsMessage) for one in message.results]
        files = dict.fromkeys(path for one in results for path in one.files_changed)
        answers = [message for message in said if isinstance(message, AssistantMessage)]
        tokens = sum(message.input_tokens + message.output_tokens for message in answers)
        return TurnUsage(len(results), tuple(files), tokens)

    @property
    def last(self) -> Message | None:
        """The last message."""
        return self.messages[-1].message if self.messages else None

    @property
    def last_text(self) -> str:
        """What the model last said in this turn."""
        said = (one.text for one in reversed(self.turn_messages) if isinstance(one, AssistantMessage))
        return next(filter(None, said), "")

    @property
    def open_message(self) -> AssistantMessage | None:
        """The model's message that nothing followed: its calls have no results yet, or it has none."""
        last = self.last
        return last if isinstance(last, AssistantMessage) else None

    def context_messages(self) -> tuple[Message, ...]:
        """What the model is sent: all of it, or the last summary and what came after."""
        return tuple(one for one in select_context_messages(self.messages) if not _is_nothing(one))

    def _read_on(self) -> None:
        for one in self._conversation.messages(self.messages[-1].number if self.messages else 0):
            self.messages.append(one)
            if isinstance(one.message, SystemMessage):
                self.system = one.message
            elif isinstance(one.message, UserMessage) and not one.message.by_loop:
                self.turn, self._begin = one.message.message_id, len(self.messages)


def build_note(text: str) -> UserMessage:
    """What the loop tells the model in the person's place."""
    return UserMessage(message_id=make_id("m"), text=text, by_loop=True)


def build_calls(message: AssistantMessage, turn: str) -> tuple[ToolCall, ...]:
    """The calls of a message as the runtime takes them: always the same for the same message."""
    return tuple(
        ToolCall(
            tool_call_id=part.tool_call_id,
            name=part.name,
            args=part.args,
            trace_id=turn,
            timestamp=datetime.now(UTC),
            provider_call_id=part.provider_call_id,
            message_id=message.message_id,
        )
        for part in message.calls
    )


def build_results_message(results: tuple[ToolResult[Any], ...]) -> ResultsMessage:
    """As much of the results as belongs in the transcript."""
    return ResultsMessage(results=tuple(map(_told, results)))


def _told(result: ToolResult[Any]) -> CallResult:
    return CallResult(
        tool_call_id=result.tool_call_id,
        name=result.name,
        ok=result.ok,
        content=render_for_model(result),
        attachments=result.attachments,
        files_changed=result.artifacts.files_changed,
    )


def _is_nothing(message: Message) -> bool:
    """An answer that had nothing in it: providers refuse to be sent one."""
    return isinstance(message, AssistantMessage) and not message.parts
