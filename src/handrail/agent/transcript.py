"""The messages of a session as a model gets them."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.protocol.calls import ToolCall
from handrail.protocol.events import End, Error, User
from handrail.protocol.messages import (
    AssistantMessage,
    CallPart,
    CallResult,
    Message,
    Part,
    ResultsMessage,
    SummaryMessage,
    SystemMessage,
    UserMessage,
)
from handrail.protocol.results import Attachment, ToolResult, render_for_model
from handrail.protocol.schema import build_flat_schema
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import encode, escape_surrogates
from handrail.runtime.conversation import Conversation
from handrail.store.journal import PendingEvent
from handrail.store.state_dir import make_id
from handrail.store.transcript import NumberedMessage

# § [agent.compaction.sending] What a model is sent of a transcript: all of it, or the last summary and what is kept
# § behind it.

_ASIDE = {SystemMessage, SummaryMessage}
_REFERENCE = re.compile(r"@output/[!-.0-~]+")


def select_context_messages(messages: Sequence[NumberedMessage]) -> tuple[Message, ...]:
    """The messages that the model sees, oldest first."""
    found = find_last_summary(messages)
    if found is None:
        return tuple(one.message for one in select_unsummarized(messages))
    number, summary = found
    cut = summary.cut
    kept = (
        truncate_results(one.message, cut) if cut is not None and one.number < number else one.message
        for one in select_unsummarized(messages)
    )
    return (summary, *kept)


def find_last_summary(messages: Sequence[NumberedMessage]) -> tuple[int, SummaryMessage] | None:
    """The summary that counts, and its number."""
    for one in reversed(messages):
        if isinstance(one.message, SummaryMessage):
            return one.number, one.message
    return None


def select_unsummarized(messages: Sequence[NumberedMessage]) -> list[NumberedMessage]:
    """The messages that no summary stands for."""
    found = find_last_summary(messages)
    first = found[1].kept_from if found else 0
    return [one for one in messages if one.number >= first and type(one.message) not in _ASIDE]


def truncate_results(message: Message, most: int) -> Message:
    """Results with at most so many characters each; nothing with pictures; any other message as it is."""
    if isinstance(message, UserMessage) and message.attachments:
        return replace(message, text=f"{message.text}\n[Left out to fit your window: a picture.]", attachments=())
    if not isinstance(message, ResultsMessage):
        return message
    return ResultsMessage(results=tuple(_shortened(result, most) for result in message.results))


def _shortened(result: CallResult, most: int) -> CallResult:
    text, left = result.content, len(result.content) - most
    notes = ["a picture"] if any(one.content for one in result.attachments) else []
    if left > 0:
        notes.append(f"{left:,} characters from the middle")
        text = f"{text[: most // 2]}\n[…]\n{text[-(most // 2) :]}"
    if not notes:
        return result
    missing = [one for one in dict.fromkeys(_REFERENCE.findall(result.content)) if one not in text]
    whole = f" The whole text: {', '.join(missing[:3])}." if missing else ""
    told = f"[Left out to fit your window: {' and '.join(notes)}.{whole} Ask for a smaller part where you need it.]"
    return replace(result, content=f"{text}\n{told}", attachments=())


# § [agent.compaction.measuring] How many tokens a transcript has: as the provider counted them, and guessed for
# § what came since.

BYTES_PER_TOKEN = 3.5
"""English has more and code fewer; rather too many tokens are guessed than too few."""
_MAX_PICTURE_TOKENS = 1_600
"""What large pictures cost, at most, with the vendors that say so."""
_AROUND = 8
"""What stands around a message or a part on the wire."""


_FEWEST = 3
"""No text has so many times fewer tokens than guessed: a server that counts fewer leaves out what it had cached."""


class TokenEstimates:
    """What was guessed about one transcript: its messages stay as they are, so nothing is guessed twice."""

    def __init__(self) -> None:
        self._found: dict[int, int] = {}

    def of(self, one: NumberedMessage) -> int:
        """The tokens of a message."""
        found = self._found.get(one.number)
        if found is None:
            found = self._found[one.number] = estimate_message_tokens(one.message)
        return found


def estimate_request_tokens(
    messages: Sequence[NumberedMessage], fixed: Callable[[], int], guesses: TokenEstimates | None = None
) -> int:
    """The tokens of the next question. `fixed` guesses those of system prompt and tools, where nobody counted."""
    guesses = guesses or TokenEstimates()
    found = find_last_summary(messages)
    since = 0
    for one in reversed(messages):
        message = one.message
        if found is not None and one.number < found[0]:
            break  # whatever was counted before, was counted of a longer transcript
        if isinstance(message, AssistantMessage) and message.input_tokens:
            counted = message.input_tokens + max(message.output_tokens, 1) + since
            return max(counted, _guessed(messages, guesses) // _FEWEST)
        since += guesses.of(one)
    return fixed() + _guessed(messages, guesses)


def _guessed(messages: Sequence[NumberedMessage], guesses: TokenEstimates) -> int:
    """The estimated tokens of what the model is sent of the transcript, without the counts of a provider."""
    if find_last_summary(messages) is None:
        return sum(map(guesses.of, select_unsummarized(messages)))
    return estimate_messages_tokens(select_context_messages(messages))


def estimate_messages_tokens(messages: Sequence[Message]) -> int:
    """A guess for several messages."""
    return sum(map(estimate_message_tokens, messages))


def estimate_message_tokens(message: Message) -> int:
    """A guess for one message."""
    if isinstance(message, AssistantMessage):
        return _AROUND + sum(_AROUND + _tokens_of_part(part) for part in message.parts)
    if isinstance(message, ResultsMessage):
        pictures = sum(bool(one.content) for result in message.results for one in result.attachments)
        texts = sum(_AROUND + estimate_text_tokens(result.content) for result in message.results)
        return _AROUND + texts + pictures * _MAX_PICTURE_TOKENS
    pictures = len(message.attachments) if isinstance(message, UserMessage) else 0
    return _AROUND + estimate_text_tokens(message.text) + pictures * _MAX_PICTURE_TOKENS


def _tokens_of_part(part: Part) -> int:
    return _tokens(len(encode(part.args))) if isinstance(part, CallPart) else estimate_text_tokens(part.text)


def estimate_text_tokens(text: str) -> int:
    """A guess for a text."""
    return _tokens(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))


def estimate_fixed_tokens(system: str, specs: Sequence[ToolSpec]) -> int:
    """A guess for what stands before the transcript."""
    texts = sum(estimate_text_tokens(spec.description) for spec in specs)
    return estimate_text_tokens(system) + texts + sum(map(_tokens_of_spec, specs))


def _tokens_of_spec(spec: ToolSpec) -> int:
    if spec.foreign is not None:
        return _AROUND + _tokens(len(encode((spec.name, spec.foreign.input_schema))))
    return _tokens_of_schema(spec.name, spec.arguments)


@lru_cache(maxsize=256)
def _tokens_of_schema(name: str, arguments: type[msgspec.Struct]) -> int:
    return _AROUND + _tokens(len(encode((name, build_flat_schema(arguments)))))


def _tokens(size: int) -> int:
    return int(size / BYTES_PER_TOKEN) + 1


# § [agent.talk] The transcript of the session: what was said, what is still open, and what the model is sent of it.


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
