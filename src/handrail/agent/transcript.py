"""The messages of a session as a model gets them."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
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
from handrail.protocol.schema import get_input_schema
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import encode, escape_surrogates
from handrail.runtime.conversation import Conversation
from handrail.store.journal import PendingEvent
from handrail.store.state_dir import make_id
from handrail.store.transcript import NumberedMessage

_NOT_IN_CONTEXT = {SystemMessage, SummaryMessage}
_REFERENCE = re.compile(r"@output/[!-.0-~]+")
BYTES_PER_TOKEN = 3.5
"""English has more, code has fewer. The estimate is rather too high than too low."""
_MAX_PICTURE_TOKENS = 1_600
"""The most that providers state for a large picture."""
_FRAME_TOKENS = 8
"""Tokens around a message or a part on the wire."""
_MAX_OVERESTIMATE = 3
"""An estimate is never this many times too high. A provider that counts fewer tokens left out what it had cached."""


class _TurnUsage(msgspec.Struct, frozen=True):
    """What a turn has used and changed so far."""

    calls: int
    files_changed: tuple[str, ...]
    tokens: int


class Transcript:
    """The messages of one session, read from the journal."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.messages: list[NumberedMessage] = []
        self.system: SystemMessage | None = None
        self.turn = ""
        self._turn_start = 0
        """The number of messages up to that prompt."""
        self.token_estimates = TokenEstimates()
        self.last_turn_event: User | End | Error | None = None
        """The state of the last turn when the transcript was read. None once a message was added."""
        self.refresh()

    def refresh(self) -> None:
        """Reads what other processes added."""
        self._read_new()
        self.last_turn_event = self._conversation.last_turn_event()

    def add(self, message: Message, *drafts: PendingEvent, taken: int = 0) -> None:
        self.add_all((message,), *drafts, taken=taken)

    def add_all(self, messages: tuple[Message, ...], *drafts: PendingEvent, taken: int = 0) -> None:
        """Stores messages with their events in one transaction."""
        self._conversation.add(messages, *drafts, taken=taken)
        self._read_new()
        self.last_turn_event = None

    def add_prompt(self, text: str, *before: Message, pictures: tuple[Attachment, ...] = (), taken: int = 0) -> None:
        """Starts a turn. `before`: messages that close the last one. `taken`: the last waiting prompt in the text."""
        prompt = UserMessage(message_id=make_id("m"), text=escape_surrogates(text), attachments=pictures)
        self.add_all((*before, prompt), (User, {"message_id": prompt.message_id, "text": prompt.text}), taken=taken)

    def add_steering(self, text: str, taken: int = 0) -> None:
        """Adds a message of the person to the running turn."""
        message = UserMessage(message_id=make_id("m"), text=escape_surrogates(text), by_loop=True)
        self.add(message, (User, {"message_id": message.message_id, "text": message.text}), taken=taken)

    def add_results(self, results: tuple[ToolResult[Any], ...], *notes: UserMessage) -> None:
        self.add_all((build_results_message(results), *notes))

    @property
    def turn_messages(self) -> list[Message]:
        return [one.message for one in self.messages[self._turn_start :]]

    @property
    def usage(self) -> _TurnUsage:
        messages = self.turn_messages
        results = [one for message in messages if isinstance(message, ResultsMessage) for one in message.results]
        files = dict.fromkeys(path for one in results for path in one.files_changed)
        answers = [message for message in messages if isinstance(message, AssistantMessage)]
        tokens = sum(message.input_tokens + message.output_tokens for message in answers)
        return _TurnUsage(len(results), tuple(files), tokens)

    @property
    def last(self) -> Message | None:
        return self.messages[-1].message if self.messages else None

    @property
    def last_text(self) -> str:
        """The last text of the model in this turn."""
        texts = (one.text for one in reversed(self.turn_messages) if isinstance(one, AssistantMessage))
        return next(filter(None, texts), "")

    @property
    def open_message(self) -> AssistantMessage | None:
        """The last message, if it is the model's: its calls have no results yet, or it has no calls."""
        last = self.last
        return last if isinstance(last, AssistantMessage) else None

    def context_messages(self) -> tuple[Message, ...]:
        """The messages that the model is sent: all, or the last summary and what came after.

        Providers refuse empty answers.
        """
        selected = select_context_messages(self.messages)
        return tuple(one for one in selected if not isinstance(one, AssistantMessage) or one.parts)

    def _read_new(self) -> None:
        for one in self._conversation.messages(self.messages[-1].number if self.messages else 0):
            self.messages.append(one)
            if isinstance(one.message, SystemMessage):
                self.system = one.message
            elif isinstance(one.message, UserMessage) and not one.message.by_loop:
                self.turn, self._turn_start = one.message.message_id, len(self.messages)


def build_note(text: str) -> UserMessage:
    """A message of the loop to the model, in the role of the user."""
    return UserMessage(message_id=make_id("m"), text=text, by_loop=True)


def build_calls(message: AssistantMessage, turn: str) -> tuple[ToolCall, ...]:
    """The calls of a message for the runtime. The same message gives the same ids."""
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
    return ResultsMessage(results=tuple(map(_to_call_result, results)))


def _to_call_result(result: ToolResult[Any]) -> CallResult:
    return CallResult(
        tool_call_id=result.tool_call_id,
        name=result.name,
        ok=result.ok,
        content=render_for_model(result),
        attachments=result.attachments,
        files_changed=result.artifacts.files_changed,
    )


def select_context_messages(messages: Sequence[NumberedMessage]) -> tuple[Message, ...]:
    """The messages that a model is sent, oldest first: all, or the last summary and what it kept."""
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
    for one in reversed(messages):
        if isinstance(one.message, SummaryMessage):
            return one.number, one.message
    return None


def select_unsummarized(messages: Sequence[NumberedMessage]) -> list[NumberedMessage]:
    found = find_last_summary(messages)
    first = found[1].kept_from if found else 0
    return [one for one in messages if one.number >= first and type(one.message) not in _NOT_IN_CONTEXT]


def truncate_results(message: Message, most: int) -> Message:
    """The message with at most `most` characters a result and without pictures."""
    if isinstance(message, UserMessage) and message.attachments:
        return replace(message, text=f"{message.text}\n[Left out to fit your window: a picture.]", attachments=())
    if not isinstance(message, ResultsMessage):
        return message
    return ResultsMessage(results=tuple(_truncate_result(result, most) for result in message.results))


def _truncate_result(result: CallResult, most: int) -> CallResult:
    text, left = result.content, len(result.content) - most
    notes = ["a picture"] if any(one.content for one in result.attachments) else []
    if left > 0:
        notes.append(f"{left:,} characters from the middle")
        text = f"{text[: most // 2]}\n[…]\n{text[-(most // 2) :]}"
    if not notes:
        return result
    missing = [one for one in dict.fromkeys(_REFERENCE.findall(result.content)) if one not in text]
    whole = f" The whole text: {', '.join(missing[:3])}." if missing else ""
    note = f"[Left out to fit your window: {' and '.join(notes)}.{whole} Ask for a smaller part where you need it.]"
    return replace(result, content=f"{text}\n{note}", attachments=())


class TokenEstimates:
    """Cached estimates for the messages of one transcript."""

    def __init__(self) -> None:
        self._tokens: dict[int, int] = {}

    def get(self, one: NumberedMessage) -> int:
        tokens = self._tokens.get(one.number)
        if tokens is None:
            tokens = self._tokens[one.number] = estimate_message_tokens(one.message)
        return tokens


def estimate_request_tokens(
    messages: Sequence[NumberedMessage], fixed: Callable[[], int], estimates: TokenEstimates | None = None
) -> int:
    """The tokens of the next request. `fixed` estimates those of system prompt and tools, where nobody counted."""
    estimates = estimates or TokenEstimates()
    found = find_last_summary(messages)
    since = 0
    for one in reversed(messages):
        message = one.message
        if found is not None and one.number < found[0]:
            break  # earlier counts are of a longer transcript
        if isinstance(message, AssistantMessage) and message.input_tokens:
            counted = message.input_tokens + max(message.output_tokens, 1) + since
            return max(counted, _estimate_context(messages, estimates) // _MAX_OVERESTIMATE)
        since += estimates.get(one)
    return fixed() + _estimate_context(messages, estimates)


def _estimate_context(messages: Sequence[NumberedMessage], estimates: TokenEstimates) -> int:
    if find_last_summary(messages) is None:
        return sum(map(estimates.get, select_unsummarized(messages)))
    return estimate_messages_tokens(select_context_messages(messages))


def estimate_messages_tokens(messages: Sequence[Message]) -> int:
    return sum(map(estimate_message_tokens, messages))


def estimate_message_tokens(message: Message) -> int:
    if isinstance(message, AssistantMessage):
        return _FRAME_TOKENS + sum(_FRAME_TOKENS + _estimate_part(part) for part in message.parts)
    if isinstance(message, ResultsMessage):
        pictures = sum(bool(one.content) for result in message.results for one in result.attachments)
        texts = sum(_FRAME_TOKENS + _estimate_text_tokens(result.content) for result in message.results)
        return _FRAME_TOKENS + texts + pictures * _MAX_PICTURE_TOKENS
    pictures = len(message.attachments) if isinstance(message, UserMessage) else 0
    return _FRAME_TOKENS + _estimate_text_tokens(message.text) + pictures * _MAX_PICTURE_TOKENS


def _estimate_part(part: Part) -> int:
    return _to_tokens(len(encode(part.args))) if isinstance(part, CallPart) else _estimate_text_tokens(part.text)


def _estimate_text_tokens(text: str) -> int:
    return _to_tokens(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))


def estimate_fixed_tokens(system: str, specs: Sequence[ToolSpec]) -> int:
    texts = sum(_estimate_text_tokens(spec.description) for spec in specs)
    return _estimate_text_tokens(system) + texts + sum(map(_estimate_spec, specs))


def _estimate_spec(spec: ToolSpec) -> int:
    return _FRAME_TOKENS + _to_tokens(len(encode((spec.name, get_input_schema(spec)))))


def _to_tokens(size: int) -> int:
    return int(size / BYTES_PER_TOKEN) + 1
