"""A turn: its limits, what ends it early, how its end is recorded."""

from itertools import pairwise
from typing import Literal

import msgspec

from handrail.agent.transcript import Transcript, build_note, build_results_message
from handrail.models.base import ModelError
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import UsageError
from handrail.protocol.events import End, Error, Notice
from handrail.protocol.messages import AssistantMessage, Message, ResultsMessage, UserMessage
from handrail.protocol.permissions import PermissionRequest, Question
from handrail.protocol.wire import encode
from handrail.runtime.conversation import Conversation
from handrail.store.journal import PendingEvent

Reason = Literal["done", "cancelled", "limit", "parked", "question", "error"]
CUT_OFF = "Your answer was cut off by its length. Continue where it ended."
_REPEATED = (
    "You made the same calls {count} times in a row, and got the same results. "
    "Try something else, or say what blocks you."
)
_WAITING = {"parked", "question"}
"""Reasons after which the turn goes on once a person answered."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one turn."""

    reason: Reason
    text: str = ""
    """The last text of the model."""
    calls: int = 0
    files_changed: tuple[str, ...] = ()
    """Files that its calls changed, in the order of their first change."""
    tokens: int = 0
    """Input and output tokens of all its requests to the model."""
    requests: tuple[PermissionRequest, ...] = ()
    questions: tuple[Question, ...] = ()
    code: str | None = None
    """The error code, if it ended early."""
    message: str | None = None
    """The error for a person."""


class TurnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The guards of one turn."""

    calls: int = 200
    tokens: int | None = None
    """Input and output tokens of all its requests to the model."""
    repeats: int = 4
    """How often the same calls may have the same results in a row before the model gets a note. Once more ends the
    turn."""
    cut_off: int = 3
    """How many answers in a row may be cut off by their length without a call."""
    attempts: int = 5
    """How often a request is sent that the provider could not answer for the moment."""
    patience: float = 120.0
    """Seconds. If a provider asks for a longer pause, the turn fails."""
    full: float = 0.8
    """The part of the model's window from which on the transcript is compacted."""


def find_exceeded_limit(transcript: Transcript, limits: TurnLimits, more: int) -> str | None:
    """Why the turn may not make `more` calls, for a person. None if it may."""
    usage = transcript.usage
    if usage.calls + more > limits.calls:
        return f"The turn was ended: it may make {limits.calls} calls. To go on, tell the model to continue."
    if limits.tokens is not None and usage.tokens >= limits.tokens:
        spent = f"it may use {limits.tokens:,} tokens, and has used {usage.tokens:,}"
        return f"The turn was ended: {spent}. To go on, tell the model to continue."
    return None


def find_cut_off_reason(message: AssistantMessage, limits: TurnLimits) -> str | None:
    """Why a turn ends with an incomplete answer, for a person. None if the answer is complete."""
    if message.finish != "length":
        return None
    often = f", {limits.cut_off} times in a row" if limits.cut_off > 1 else ""
    return (
        f"The turn was ended: the model's answer was cut off by its length{often}. To go on, tell the model to "
        "continue."
    )


def build_loop_notes(
    transcript: Transcript, message: AssistantMessage, done: Done, limits: TurnLimits
) -> tuple[UserMessage, ...]:
    notes = [build_note(CUT_OFF)] if message.finish == "length" else []
    count = _count_repeats([*transcript.turn_messages, build_results_message(done.results)])
    if count == limits.repeats:
        notes.append(build_note(_REPEATED.format(count=count)))
    return tuple(notes)


def find_stuck_reason(transcript: Transcript, limits: TurnLimits) -> str | None:
    """Why the turn is stuck although the model got a note, for a person."""
    count = _count_repeats(transcript.turn_messages)
    if count <= limits.repeats:
        return None
    return f"The turn was ended: the model made the same calls {count} times, and they came to the same results."


def _count_repeats(messages: list[Message]) -> int:
    """How often, at the end, the same calls had the same results."""
    last: bytes | None = None
    count = 0
    for after, before in pairwise(reversed(messages)):
        if isinstance(before, AssistantMessage) and isinstance(after, ResultsMessage):
            digest = _digest_round(before, after)
            if last is not None and digest != last:
                break
            last, count = digest, count + 1
    return count


def _digest_round(message: AssistantMessage, results: ResultsMessage) -> bytes:
    calls = [(call.name, call.args) for call in message.calls]
    return encode([calls, [(result.ok, result.content) for result in results.results]])


def find_ended_turn(transcript: Transcript) -> Turn | None:
    """The last turn, if it has ended. None if there is work left."""
    event, usage = transcript.last_turn_event, transcript.usage
    if isinstance(event, End) and event.reason not in _WAITING:
        return Turn(
            reason=event.reason,
            text=event.text,
            calls=event.calls,
            files_changed=event.files_changed,
            tokens=usage.tokens,
        )
    if transcript.last is None:
        raise UsageError("this session has nothing to resume; give it a prompt")
    if event is None and isinstance(transcript.last, AssistantMessage) and not transcript.last.calls:
        # A fork of a session whose turn had ended.
        return Turn(reason="done", text=transcript.last.text, calls=usage.calls, files_changed=usage.files_changed)
    return None


def end_turn(conversation: Conversation, transcript: Transcript, reason: Reason, why: str | None = None) -> Turn:
    """Ends the turn. `why`: the limit that ended it early, for a person."""
    turn = _build_turn(transcript, reason, code="LIMIT_EXCEEDED" if why else None, message=why)
    notice: tuple[PendingEvent, ...] = ((Notice, {"code": "LIMIT_EXCEEDED", "text": why}),) if why else ()
    conversation.tell(*notice, _build_end_event(turn))
    return turn


def park_turn(conversation: Conversation, transcript: Transcript, parked: Parked) -> Turn:
    """Ends the turn until a person answers. The event is emitted once."""
    reason: Reason = "question" if parked.questions else "parked"
    turn = _build_turn(transcript, reason, parked)
    if not (isinstance(transcript.last_turn_event, End) and transcript.last_turn_event.reason == reason):
        conversation.tell(_build_end_event(turn))
    return turn


def fail_turn(conversation: Conversation, transcript: Transcript, error: ModelError) -> Turn:
    """Ends the turn with an error. `go_on` continues it."""
    conversation.tell((Error, {"code": error.code, "message": error.message, "retryable": error.retryable}))
    return _build_turn(transcript, "error", code=error.code, message=error.message)


def build_defect_error(error: Exception) -> ModelError:
    """The error of a defect. It leaves the message out, which may quote contents."""
    return ModelError("INTERNAL", f"The turn failed ({type(error).__name__}). It can be resumed.")


def _build_turn(
    transcript: Transcript,
    reason: Reason,
    parked: Parked | None = None,
    code: str | None = None,
    message: str | None = None,
) -> Turn:
    usage = transcript.usage
    return Turn(
        reason=reason,
        text=transcript.last_text,
        calls=usage.calls,
        files_changed=usage.files_changed,
        tokens=usage.tokens,
        requests=parked.requests if parked else (),
        questions=parked.questions if parked else (),
        code=code,
        message=message,
    )


def _build_end_event(turn: Turn) -> PendingEvent:
    return End, {"reason": turn.reason, "calls": turn.calls, "files_changed": turn.files_changed, "text": turn.text}
