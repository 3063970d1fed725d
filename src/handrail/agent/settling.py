"""Brings what is open to an end: every call has its result, whoever it waited for."""

from contextlib import suppress
from typing import Any

from handrail.agent.stopping import finish_despite_cancel
from handrail.agent.talk import Transcript, build_calls, build_results_message
from handrail.async_rail import AsyncHandrail
from handrail.protocol.calls import Parked
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.messages import AssistantMessage
from handrail.protocol.permissions import Answer, Question
from handrail.protocol.results import Attachment, ToolResult

_MAX_REASON_CHARS = 500
_INSTEAD = "The person said something else before this call was made. Nothing was run."
_CANCELLED = "The person ended the turn. Nothing was run."


async def start_turn(
    rail: AsyncHandrail, transcript: Transcript, prompt: str, pictures: tuple[Attachment, ...] = ()
) -> None:
    """Takes what the person says: as the reply, where the model asked something; otherwise it begins a turn, and what
    still waited for the person was refused by it. What has pictures is no reply: those are words."""
    message = transcript.open_message
    if message is None or not message.calls:
        transcript.add_prompt(prompt, pictures=pictures)
        return
    calls = build_calls(message, transcript.turn)
    outcome = await rail.in_pool(lambda: rail.conversation.refuse(calls, ToolError("CANCELLED", _INSTEAD)))
    asked = outcome.questions if isinstance(outcome, Parked) else ()
    if asked and not pictures and await _replied(rail, asked[0], prompt):
        return  # the turn goes on with it
    reason = f"They said instead: {prompt}"[:_MAX_REASON_CHARS]
    results = await finish_despite_cancel(
        close_calls(rail, message, transcript.turn, ToolError("CANCELLED", _INSTEAD), reason)
    )
    transcript.add_prompt(prompt, build_results_message(results), pictures=pictures)


async def _replied(rail: AsyncHandrail, question: Question, prompt: str) -> bool:
    """Whether it is a reply: not where it is none of the options, and only they are welcome."""
    try:
        await finish_despite_cancel(rail.reply(question, prompt))
    except UsageError:
        return False
    return True


async def close_open_calls(rail: AsyncHandrail, transcript: Transcript) -> None:
    """Closes the calls of a turn that was cancelled."""
    message = transcript.open_message
    if message is not None and message.calls:
        error = ToolError("CANCELLED", _CANCELLED)
        transcript.add_results(await close_calls(rail, message, transcript.turn, error, "the turn was ended"))


async def refuse_calls(
    rail: AsyncHandrail, transcript: Transcript, message: AssistantMessage, why: str
) -> tuple[ToolResult[Any], ...]:
    """The results of calls that the turn must not make any more."""
    error = ToolError("LIMIT_EXCEEDED", f"{why} Nothing was run.")
    return await finish_despite_cancel(close_calls(rail, message, transcript.turn, error, "the turn was ended"))


async def close_calls(
    rail: AsyncHandrail, message: AssistantMessage, turn: str, error: ToolError, reason: str
) -> tuple[ToolResult[Any], ...]:
    """The results of a message's calls: those that were made keep theirs, what waits for a yes is refused for this
    reason, and the rest gets this error."""
    calls = build_calls(message, turn)
    was_cancelled = rail.conversation.cancelled
    rail.cancel()  # a refusal lets the other calls of its batch run; here nothing shall
    try:
        while isinstance(outcome := await rail.in_pool(lambda: rail.conversation.refuse(calls, error)), Parked):
            await _refuse(rail, outcome, reason)
        return outcome.results
    finally:
        if not was_cancelled:
            rail.uncancel()


async def _refuse(rail: AsyncHandrail, parked: Parked, reason: str) -> None:
    for request in parked.requests:
        with suppress(UsageError):  # answered meanwhile
            await rail.answer(request.id, Answer(kind="deny", reason=reason))
    for question in parked.questions:
        with suppress(UsageError):
            await rail.reply(question, None)
