"""Ends a turn that gets nowhere."""

from itertools import pairwise

from handrail.agent.model_call import CUT_OFF
from handrail.agent.transcript import Transcript, build_note, build_results_message
from handrail.agent.turn import Reason, Turn, TurnLimits
from handrail.models.model import ModelError
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import UsageError
from handrail.protocol.events import End, Error, Notice
from handrail.protocol.messages import AssistantMessage, Message, ResultsMessage, UserMessage
from handrail.protocol.wire import encode
from handrail.runtime.conversation import Conversation
from handrail.store.journal import PendingEvent

# § [agent.guards] What keeps a turn from going on for ever: how much it may use, and whether it gets anywhere.

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


# § [agent.ending] The end of a turn, told once: however often somebody asks for it, and whatever process does.

_WAITS = {"parked", "question"}


def find_ended_turn(transcript: Transcript) -> Turn | None:
    """The last turn, where it is over; None where there is something to go on with."""
    mark, so_far = transcript.last_turn_event, transcript.usage
    if isinstance(mark, End) and mark.reason not in _WAITS:
        return Turn(
            reason=mark.reason,
            text=mark.text,
            calls=mark.calls,
            files_changed=mark.files_changed,
            tokens=so_far.tokens,
        )
    if transcript.last is None:
        raise UsageError("this session has nothing to go on with; give it a prompt")
    if mark is None and isinstance(transcript.last, AssistantMessage) and not transcript.last.calls:
        # A fork of a session whose turn was over: in this one nothing began.
        return Turn(reason="done", text=transcript.last.text, calls=so_far.calls, files_changed=so_far.files_changed)
    return None


def end_turn(conversation: Conversation, transcript: Transcript, reason: Reason, why: str | None = None) -> Turn:
    """Ends the turn; `why`: what ended it early, in words for a person."""
    turn = _turn(transcript, reason, code="LIMIT_EXCEEDED" if why else None, message=why)
    told: PendingEvent = (
        End,
        {"reason": reason, "calls": turn.calls, "files_changed": turn.files_changed, "text": turn.text},
    )
    warning: tuple[PendingEvent, ...] = ((Notice, {"code": "LIMIT_EXCEEDED", "text": why}),) if why else ()
    conversation.tell(*warning, told)
    return turn


def park_turn(conversation: Conversation, transcript: Transcript, parked: Parked) -> Turn:
    """Ends the turn until somebody has answered. Who only looks whether they have is not told of it anew."""
    reason: Reason = "question" if parked.questions else "parked"
    turn = _turn(transcript, reason, parked)
    if not (isinstance(transcript.last_turn_event, End) and transcript.last_turn_event.reason == reason):
        told = {"reason": reason, "calls": turn.calls, "files_changed": turn.files_changed, "text": turn.text}
        conversation.tell((End, told))
    return turn


def fail_turn(conversation: Conversation, transcript: Transcript, error: ModelError) -> Turn:
    """Ends the turn with what went wrong; `go_on` goes on from where it was."""
    conversation.tell((Error, {"code": error.code, "message": error.message, "retryable": error.retryable}))
    return _turn(transcript, "error", code=error.code, message=error.message)


def build_defect_error(error: Exception) -> ModelError:
    """What is told of an error that nobody foresaw: not its words, which may quote anything."""
    return ModelError("INTERNAL", f"The turn failed ({type(error).__name__}). It can go on from where it was.")


def _turn(
    transcript: Transcript,
    reason: Reason,
    parked: Parked | None = None,
    code: str | None = None,
    message: str | None = None,
) -> Turn:
    so_far = transcript.usage
    return Turn(
        reason=reason,
        text=transcript.last_text,
        calls=so_far.calls,
        files_changed=so_far.files_changed,
        tokens=so_far.tokens,
        requests=parked.requests if parked else (),
        questions=parked.questions if parked else (),
        code=code,
        message=message,
    )
