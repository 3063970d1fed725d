"""How many tokens a talk has: as the provider counted them, and guessed for what came since."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from handrail.agent.compaction.sending import in_full, last_summary, sent
from handrail.protocol.message import AssistantMessage, CallPart, Message, Part, ResultsMessage, UserMessage
from handrail.protocol.schema import flat_schema
from handrail.protocol.tool import ToolSpec
from handrail.protocol.wire import encode
from handrail.store.messages import Numbered

BYTES_A_TOKEN = 3.5
"""English has more and code fewer; rather too many tokens are guessed than too few."""
_PICTURE = 1_600
"""What large pictures cost, at most, with the vendors that say so."""
_AROUND = 8
"""What stands around a message or a part on the wire."""


_FEWEST = 3
"""No text has so many times fewer tokens than guessed: a server that counts fewer leaves out what it had cached."""


class Guesses:
    """What was guessed about one talk: its messages stay as they are, so nothing is guessed twice."""

    def __init__(self) -> None:
        self._found: dict[int, int] = {}

    def of(self, one: Numbered) -> int:
        """The tokens of a message."""
        found = self._found.get(one.number)
        if found is None:
            found = self._found[one.number] = tokens_of(one.message)
        return found


def measured(messages: Sequence[Numbered], fixed: Callable[[], int], guesses: Guesses | None = None) -> int:
    """The tokens of the next question. `fixed` guesses those of system prompt and tools, where nobody counted."""
    guesses = guesses or Guesses()
    found = last_summary(messages)
    since = 0
    for one in reversed(messages):
        message = one.message
        if found is not None and one.number < found[0]:
            break  # whatever was counted before, was counted of a longer talk
        if isinstance(message, AssistantMessage) and message.input_tokens:
            counted = message.input_tokens + max(message.output_tokens, 1) + since
            return max(counted, _guessed(messages, guesses) // _FEWEST)
        since += guesses.of(one)
    return fixed() + _guessed(messages, guesses)


def _guessed(messages: Sequence[Numbered], guesses: Guesses) -> int:
    """What the model is sent of the talk, if nobody counted."""
    if last_summary(messages) is None:
        return sum(map(guesses.of, in_full(messages)))
    return tokens_in(sent(messages))


def tokens_in(messages: Sequence[Message]) -> int:
    """A guess for several messages."""
    return sum(map(tokens_of, messages))


def tokens_of(message: Message) -> int:
    """A guess for one message."""
    if isinstance(message, AssistantMessage):
        return _AROUND + sum(_AROUND + _tokens_of_part(part) for part in message.parts)
    if isinstance(message, ResultsMessage):
        pictures = sum(bool(one.content) for result in message.results for one in result.attachments)
        texts = sum(_AROUND + tokens_of_text(result.content) for result in message.results)
        return _AROUND + texts + pictures * _PICTURE
    pictures = len(message.attachments) if isinstance(message, UserMessage) else 0
    return _AROUND + tokens_of_text(message.text) + pictures * _PICTURE


def _tokens_of_part(part: Part) -> int:
    return _tokens(len(encode(part.args))) if isinstance(part, CallPart) else tokens_of_text(part.text)


def tokens_of_text(text: str) -> int:
    """A guess for a text."""
    return _tokens(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))


def tokens_of_tools(system: str, specs: Sequence[ToolSpec]) -> int:
    """A guess for what stands before the talk."""
    texts = sum(tokens_of_text(spec.description) for spec in specs)
    return tokens_of_text(system) + texts + sum(map(_tokens_of_spec, specs))


def _tokens_of_spec(spec: ToolSpec) -> int:
    if spec.foreign is not None:
        return _AROUND + _tokens(len(encode((spec.name, spec.foreign.input_schema))))
    return _tokens_of_schema(spec.name, spec.arguments)


@lru_cache(maxsize=256)
def _tokens_of_schema(name: str, arguments: type[msgspec.Struct]) -> int:
    return _AROUND + _tokens(len(encode((name, flat_schema(arguments)))))


def _tokens(size: int) -> int:
    return int(size / BYTES_A_TOKEN) + 1
