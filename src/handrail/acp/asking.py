"""Asks the person in the editor."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from acp import RequestError
from pydantic import ValidationError

from handrail.acp.permission import build_card, build_options, parse_answer
from handrail.acp.questions import build_question_form, parse_form_reply
from handrail.acp.reached import EditorLink
from handrail.agent.loop import ask_in_turn
from handrail.async_api import AsyncHandrail
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Question

_POLL_SECONDS = 0.5
"""Seconds between two looks whether another process answered: nothing notifies us."""


class EditorApprover:
    """Asks the editor until nothing is pending. An answer from elsewhere closes the prompt of the editor."""

    def __init__(self, rail: AsyncHandrail, editor: EditorLink) -> None:
        self._rail, self._editor = rail, editor
        self.tell: Callable[[], Awaitable[None]] = _tell_nothing
        """Sends all events up to now: the editor has to know a call before it is asked about it."""
        self.cancel: Callable[[], object] = lambda: None
        """Cancels the turn."""
        self._leaving = asyncio.Event()
        self._asking = False

    def leave(self) -> bool:
        """Stops asking. Requests stay pending. Returns whether the editor was asked just now."""
        self._leaving.set()
        return self._asking

    async def __call__(self, parked: Parked) -> Done | Parked:
        try:
            return await ask_in_turn(self._rail, parked, self)
        except UsageError:
            if not parked.questions:
                raise
            return parked  # the form has no valid reply, so the next prompt is the reply
        finally:
            self._asking = False

    async def ask(self, subject: PermissionRequest | Question, _number: int, _total: int) -> ApproverReply:
        self._asking = True
        await self.tell()
        if isinstance(subject, Question):
            return await self._ask_question(subject)
        asked = self._editor.client.request_permission(
            session_id=self._rail.session_id,
            tool_call=build_card(subject, self._editor.folder),
            options=build_options(subject),
        )
        response = await self._race(asked, subject)
        if response is None:
            return ApproverReply(subject)
        answer = parse_answer(response, subject)
        if answer is None:  # the editor says that the turn is over
            self.cancel()
            await asyncio.Event().wait()  # until the cancellation arrives here
        return ApproverReply(subject, answer)

    def report(self, _reply: ApproverReply, _outcome: Done | Parked | None) -> None:
        """The editor gets the outcome as events."""

    async def _ask_question(self, question: Question) -> ApproverReply:
        if not self._editor.forms:
            return ApproverReply(question)
        asked = self._editor.client.create_elicitation(
            message=question.question, mode=build_question_form(question, self._rail.session_id)
        )
        response = await self._race(asked, question)
        if response is None:
            return ApproverReply(question)
        return ApproverReply(question, parse_form_reply(response) or Answer(kind="deny"))

    async def _race(self, asked: Coroutine[Any, Any, Any], subject: PermissionRequest | Question) -> Any | None:
        """The editor's answer. None if it cannot answer, another process did, or asking stops."""
        answer = asyncio.ensure_future(asked)
        others = [asyncio.ensure_future(self._wait_for_others(subject)), asyncio.ensure_future(self._leaving.wait())]
        try:
            await asyncio.wait({answer, *others}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        except (RequestError, ConnectionError, ValidationError):
            return None
        finally:
            for one in (answer, *others):
                one.cancel()
            await asyncio.wait({answer, *others})
            self._asking = False  # only now: `leave` must not cancel a request that is still shown

    async def _wait_for_others(self, subject: PermissionRequest | Question) -> None:
        while await self._rail.is_pending(subject):
            await asyncio.sleep(_POLL_SECONDS)


async def _tell_nothing() -> None:
    """There is no editor session yet."""
