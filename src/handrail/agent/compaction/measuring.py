"""How many tokens a transcript has: as the provider counted them, and guessed for what came since."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from handrail.agent.compaction.sending import find_last_summary, select_context_messages, select_unsummarized
from handrail.protocol.messages import AssistantMessage, CallPart, Message, Part, ResultsMessage, UserMessage
from handrail.protocol.schema import build_flat_schema
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import encode
from handrail.store.transcript import NumberedMessage

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
