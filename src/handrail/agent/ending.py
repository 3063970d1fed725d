"""The end of a turn, told once: however often somebody asks for it, and whatever process does."""

from handrail.agent.talk import Transcript
from handrail.agent.turn import Reason, Turn
from handrail.models.model import ModelError
from handrail.protocol.calls import Parked
from handrail.protocol.errors import UsageError
from handrail.protocol.events import End, Error, Notice
from handrail.protocol.messages import AssistantMessage
from handrail.runtime.conversation import Conversation
from handrail.store.journal import PendingEvent

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
