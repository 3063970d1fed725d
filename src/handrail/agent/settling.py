"""Brings what is open to an end: every call has its result, whoever it waited for."""

from contextlib import suppress
from typing import Any

from handrail.agent.stopping import to_its_end
from handrail.agent.talk import Talk, calls_of, results_message
from handrail.async_rail import AsyncHandrail
from handrail.protocol.batch import Parked
from handrail.protocol.error import ToolError, UsageError
from handrail.protocol.message import AssistantMessage
from handrail.protocol.permission import Answer
from handrail.protocol.question import Question
from handrail.protocol.result import Attachment, ToolResult

_LONGEST_REASON = 500
_INSTEAD = "The person said something else before this call was made. Nothing was run."
_CANCELLED = "The person ended the turn. Nothing was run."


async def hear(rail: AsyncHandrail, talk: Talk, prompt: str, pictures: tuple[Attachment, ...] = ()) -> None:
    """Takes what the person says: as the reply, where the model asked something; otherwise it begins a turn, and what
    still waited for the person was refused by it. What has pictures is no reply: those are words."""
    message = talk.open_message
    if message is None or not message.calls:
        talk.add_prompt(prompt, pictures=pictures)
        return
    calls = calls_of(message, talk.turn)
    outcome = await rail.in_pool(lambda: rail.conversation.refuse(calls, ToolError("CANCELLED", _INSTEAD)))
    asked = outcome.questions if isinstance(outcome, Parked) else ()
    if asked and not pictures and await _replied(rail, asked[0], prompt):
        return  # the turn goes on with it
    reason = f"They said instead: {prompt}"[:_LONGEST_REASON]
    results = await to_its_end(closed(rail, message, talk.turn, ToolError("CANCELLED", _INSTEAD), reason))
    talk.add_prompt(prompt, results_message(results), pictures=pictures)


async def _replied(rail: AsyncHandrail, question: Question, prompt: str) -> bool:
    """Whether it is a reply: not where it is none of the options, and only they are welcome."""
    try:
        await to_its_end(rail.reply(question, prompt))
    except UsageError:
        return False
    return True


async def settle(rail: AsyncHandrail, talk: Talk) -> None:
    """Closes the calls of a turn that was cancelled."""
    message = talk.open_message
    if message is not None and message.calls:
        error = ToolError("CANCELLED", _CANCELLED)
        talk.add_results(await closed(rail, message, talk.turn, error, "the turn was ended"))


async def refused(rail: AsyncHandrail, talk: Talk, message: AssistantMessage, why: str) -> tuple[ToolResult[Any], ...]:
    """The results of calls that the turn must not make any more."""
    error = ToolError("LIMIT_EXCEEDED", f"{why} Nothing was run.")
    return await to_its_end(closed(rail, message, talk.turn, error, "the turn was ended"))


async def closed(
    rail: AsyncHandrail, message: AssistantMessage, turn: str, error: ToolError, reason: str
) -> tuple[ToolResult[Any], ...]:
    """The results of a message's calls: those that were made keep theirs, what waits for a yes is refused for this
    reason, and the rest gets this error."""
    calls = calls_of(message, turn)
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
