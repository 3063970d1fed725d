"""What becomes of a whole answer: cut-off calls are none, and an answer that is no answer is asked for again."""

from typing import Any

import msgspec

from handrail.agent.limits import TurnLimits
from handrail.agent.talk import Transcript, build_note
from handrail.models.model import Completion, ModelError
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.messages import AssistantMessage, CallPart, Part, TextPart, UserMessage
from handrail.protocol.wire import encode, escape_surrogates, sanitize_json
from handrail.store.journal import PendingEvent

CUT_OFF = "Your answer was cut off by its length. Go on where it ended."
_CUT_OFF_CALL = (
    "Your answer was cut off by its length in the middle of a call to {name}. That call was not made. "
    "Make it anew with less in it: write a large file in several steps."
)
_BLANK = "Your answer was empty. Make a call, or say in words what you found or did."


class NormalizedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it is written down."""

    parts: tuple[Part, ...]
    notes: tuple[UserMessage, ...] = ()
    """What the model is told of it at once; then it is asked again."""
    drafts: tuple[PendingEvent, ...] = ()


def normalize_answer(answer: Completion, transcript: Transcript, limits: TurnLimits, model: str) -> NormalizedAnswer:
    """Takes from an answer what can be counted on. ModelError where that is nothing, again."""
    parts = tuple(_readable(part) for part in answer.parts)
    if answer.finish == "length":
        return _cut_off(parts, transcript, limits)
    if _is_blank(parts):
        return _blank(parts, answer, transcript, model)
    return NormalizedAnswer(parts=parts)


def _cut_off(parts: tuple[Part, ...], transcript: Transcript, limits: TurnLimits) -> NormalizedAnswer:
    lost = parts[-1] if parts and isinstance(parts[-1], CallPart) else None
    kept = parts[:-1] if lost is not None else parts
    drafts: tuple[PendingEvent, ...] = ()
    text = CUT_OFF
    if lost is not None:
        text = _CUT_OFF_CALL.format(name=lost.name[:80])
        told = f"The model's answer was cut off in the middle of a call to {lost.name[:80]}. The call was not made."
        drafts = ((WarningEvent, {"code": "LIMIT_EXCEEDED", "text": told}),)
    goes_on = any(isinstance(part, CallPart) for part in kept) or _cut_off_before(transcript) + 1 >= limits.cut_off
    return NormalizedAnswer(parts=kept, notes=() if goes_on else (build_note(text),), drafts=drafts)


def _cut_off_before(transcript: Transcript) -> int:
    """How many answers in a row were cut off and had no call."""
    count = 0
    for message in reversed(transcript.turn_messages):
        if isinstance(message, AssistantMessage):
            if message.finish != "length" or message.calls:
                break
            count += 1
    return count


def _blank(parts: tuple[Part, ...], answer: Completion, transcript: Transcript, model: str) -> NormalizedAnswer:
    if answer.finish == "filtered":
        raise ModelError("UNAVAILABLE", f"The provider of {model} withheld the answer. Say it in other words.")
    before = next((one for one in reversed(transcript.turn_messages) if isinstance(one, AssistantMessage)), None)
    if before is not None and _is_blank(before.parts):
        raise ModelError("UNAVAILABLE", f"{model} answered with nothing, twice. Try again, or choose another model.")
    return NormalizedAnswer(parts=parts, notes=(build_note(_BLANK),))


def _is_blank(parts: tuple[Part, ...]) -> bool:
    """Nothing for the person and no call; what it thought for itself does not count."""
    return not any(isinstance(part, CallPart) or (isinstance(part, TextPart) and part.text.strip()) for part in parts)


def _readable(part: Part) -> Part:
    """The part as the journal can hold it. Arguments that are no JSON become a text: nothing is run by them."""
    if not isinstance(part, CallPart):
        return msgspec.structs.replace(part, text=escape_surrogates(part.text))
    args, are_json = sanitize_json(part.args)
    given: Any = args if are_json else encode(args).decode()
    return msgspec.structs.replace(part, name=escape_surrogates(part.name), args=given)
