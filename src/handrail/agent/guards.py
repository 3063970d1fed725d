"""What keeps a turn from going on for ever: how much it may use, and whether it gets anywhere."""

from itertools import pairwise

from handrail.agent.completing import CUT_OFF
from handrail.agent.limits import TurnLimits
from handrail.agent.talk import Transcript, build_note, build_results_message
from handrail.protocol.calls import Done
from handrail.protocol.messages import AssistantMessage, Message, ResultsMessage, UserMessage
from handrail.protocol.wire import encode

_REPEATED = (
    "You made the same calls {count} times in a row, and they came to the same results. "
    "Do something else, or say what keeps you from getting on."
)


def find_exceeded_limit(transcript: Transcript, limits: TurnLimits, more: int) -> str | None:
    """Why the turn must not make so many calls more, in words for a person; None where it may."""
    so_far = transcript.usage
    if so_far.calls + more > limits.calls:
        return f"The turn was ended: it may make {limits.calls} calls. Say so if it shall go on."
    if limits.tokens is not None and so_far.tokens >= limits.tokens:
        told = f"it may use {limits.tokens:,} tokens, and has used {so_far.tokens:,}"
        return f"The turn was ended: {told}. Say so if it shall go on."
    return None


def find_cut_off_reason(message: AssistantMessage, limits: TurnLimits) -> str | None:
    """Why a turn ends with words that are not whole, in words for a person; None where they are."""
    if message.finish != "length":
        return None
    often = f", {limits.cut_off} times in a row" if limits.cut_off > 1 else ""
    return f"The turn was ended: the model's answer was cut off by its length{often}. Say so if it shall go on."


def build_loop_notes(
    transcript: Transcript, message: AssistantMessage, done: Done, limits: TurnLimits
) -> tuple[UserMessage, ...]:
    """What the model is told beside these results of its calls."""
    notes = [build_note(CUT_OFF)] if message.finish == "length" else []
    count = _repeats([*transcript.turn_messages, build_results_message(done.results)])
    if count == limits.repeats:
        notes.append(build_note(_REPEATED.format(count=count)))
    return tuple(notes)


def find_stuck_reason(transcript: Transcript, limits: TurnLimits) -> str | None:
    """Why the turn gets nowhere although the model was told, in words for a person."""
    count = _repeats(transcript.turn_messages)
    if count <= limits.repeats:
        return None
    return f"The turn was ended: the model made the same calls {count} times, and they came to the same results."


def _repeats(said: list[Message]) -> int:
    """How often, at the end, the same calls had the same results."""
    last: bytes | None = None
    count = 0
    for after, before in pairwise(reversed(said)):
        if isinstance(before, AssistantMessage) and isinstance(after, ResultsMessage):
            one = _round(before, after)
            if last is not None and one != last:
                break
            last, count = one, count + 1
    return count


def _round(message: AssistantMessage, results: ResultsMessage) -> bytes:
    calls = [(call.name, call.args) for call in message.calls]
    return encode([calls, [(result.ok, result.content) for result in results.results]])
