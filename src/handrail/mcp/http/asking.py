"""Sees to it that a call that asks is answered in the end, by whichever way its client can: a form, another round, or
somebody who answers elsewhere while it waits. A request that is given up leaves the call waiting as it does."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from handrail.mcp.caller import Caller
from handrail.mcp.calling import ClientCalls
from handrail.mcp.http.following import RequestRunner
from handrail.mcp.http.replies import get_reply
from handrail.mcp.news import ServerNotification
from handrail.mcp.outcomes import Outcome, ParkedCall, UnansweredCall
from handrail.mcp.permission.answering import apply_form_answer
from handrail.mcp.permission.forms import build_client_form
from handrail.mcp.permission.notifying import notify
from handrail.mcp.permission.rounds import build_input_required
from handrail.mcp.permission.waiting import POLL_SECONDS, WAIT_SECONDS, AnswerWatch
from handrail.protocol.results import ToolResult

_WITHDRAW_SECONDS = 0.5
"""Seconds that it may take to take a form back."""

Settled = ToolResult[Any] | ParkedCall | dict[str, Any]
"""What a call comes to; what a version without a handshake asks by another round is an answer that is ready."""


class RequestApproval:
    """One request, and the person behind it."""

    def __init__(
        self,
        context: ServerRequestContext[Any, Any],
        caller: Caller,
        calls: ClientCalls,
        following: RequestRunner,
        tell: Callable[[ServerNotification], None],
    ) -> None:
        self._context = context
        self._reply = get_reply(context)
        self._caller = caller
        self._calls = calls
        self._following = following
        self._tell = tell
        self._until = time.monotonic() + WAIT_SECONDS

    async def settle(self, outcome: Outcome) -> Settled:
        """What a call comes to, once nobody has to be asked here any more."""
        while isinstance(outcome, UnansweredCall):
            asks = outcome
            if not self._caller.elicits or not asks.shown:
                outcome = await self._elsewhere(asks)
            elif self._caller.modern:
                return await self._following.run(lambda asks=asks: self._round(asks))
            else:
                outcome = await self._form(asks)
        return outcome

    def _say(self, text: str) -> None:
        self._tell(ServerNotification("info", text, progress=True))

    def _round(self, asks: UnansweredCall) -> dict[str, Any]:
        return build_input_required(self._calls, asks, self._caller)

    async def _elsewhere(self, asks: UnansweredCall) -> Outcome:
        """Waits for somebody to answer elsewhere, for a while, and while the client does."""
        watched = await self._following.query(lambda: AnswerWatch(self._calls, asks))
        await self._following.query(lambda: notify(asks))
        while time.monotonic() < self._until and not self._reply.is_lost:
            watched.tell(self._say)
            if await self._following.query(watched.has_changed):
                return await self._run(asks, lambda: self._calls.poll(asks))
            await asyncio.sleep(POLL_SECONDS)
        return await self._leave(asks)

    async def _form(self, asks: UnansweredCall) -> Outcome:
        """Opens a form at the client, until it is sent back, somebody answers elsewhere, or the client is gone."""
        form = asyncio.ensure_future(self._sent_back(asks))
        try:
            watched = await self._following.query(lambda: AnswerWatch(self._calls, asks))
            while not (await asyncio.wait([form], timeout=POLL_SECONDS))[0]:
                watched.tell(self._say)
                if self._reply.is_lost:
                    return await self._leave(asks)
                if await self._following.query(watched.has_changed):
                    return await self._run(asks, lambda: self._calls.poll(asks))
        finally:
            await wait_until_withdrawn(form)
        return await self._said(asks, form.result())

    async def _sent_back(self, asks: UnansweredCall) -> dict[str, Any] | None:
        """What the client sends back; None where it says that it has forms, and fails to show one."""
        params = types.ElicitRequestFormParams.model_validate(build_client_form(asks, self._caller))
        metadata = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            reply = await self._context.session.send_request(
                types.ElicitRequest(params=params), types.ElicitResult, metadata=metadata
            )
        except (MCPError, ValidationError):
            return None
        return reply.model_dump(mode="json", exclude_none=True)

    async def _said(self, asks: UnansweredCall, reply: dict[str, Any] | None) -> Outcome:
        if reply is None:
            return await self._elsewhere(asks)
        return await self._run(asks, lambda: apply_form_answer(self._calls, asks, reply))

    async def _run(self, asks: UnansweredCall, work: Callable[[], Outcome]) -> Outcome:
        return await self._following.run(work, asks.call_id)

    async def _leave(self, asks: UnansweredCall) -> ParkedCall:
        return await self._following.run(lambda: self._calls.park(asks))


async def wait_until_withdrawn(form: asyncio.Future[Any], seconds: float = _WITHDRAW_SECONDS) -> None:
    """Waits until the client was told that nobody waits for a form any more, where somebody did. The SDK tries for much
    longer, also where the server ends and nobody hears it."""
    if form.done():
        return
    form.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait([form], timeout=seconds)
