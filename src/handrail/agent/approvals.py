"""Approvals while an agent is at work: the loop of `runtime.approvals` for asyncio."""

from typing import Protocol

from handrail.agent.cancel import finish_despite_cancel
from handrail.async_api import AsyncHandrail
from handrail.protocol.calls import Done, Parked
from handrail.protocol.permissions import ApproverReply, PermissionRequest, Question
from handrail.runtime.approvals import locate_request


class AsyncApprover(Protocol):
    """Asks a person while the event loop goes on."""

    async def ask(self, subject: PermissionRequest | Question, number: int, total: int, /) -> ApproverReply: ...

    def report(self, reply: ApproverReply, outcome: Done | Parked | None, /) -> None:
        """Tells the person the outcome of their answer. None: it was answered elsewhere before."""
        ...


async def ask_in_turn(rail: AsyncHandrail, parked: Parked, approver: AsyncApprover) -> Done | Parked:
    """Asks about each request and question of a parked batch until it is done or one is left for later. Results of
    calls that other processes ran are missing."""
    outcome: Done | Parked = parked
    while isinstance(outcome, Parked) and (subjects := outcome.requests or outcome.questions):
        reply = await approver.ask(subjects[0], *locate_request(parked, outcome))
        if reply.answer is None:
            return outcome if await rail.is_pending(reply.subject) else Done(results=())
        answered = await finish_despite_cancel(rail.try_answer(reply), rail.cancel)
        approver.report(reply, answered)
        outcome = answered or Done(results=())
    return outcome
