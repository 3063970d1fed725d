"""Puts what waits to the person in the editor, until nothing does. Whoever answers first, there or elsewhere,
counts."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from acp import RequestError
from pydantic import ValidationError

from handrail.acp.permission import build_card, build_options, parse_answer
from handrail.acp.questions import build_question_form, parse_form_reply
from handrail.acp.reached import EditorLink
from handrail.agent.cancel import finish_despite_cancel
from handrail.async_api import AsyncHandrail
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Answer, PermissionRequest, Question, Reply

_POLL_SECONDS = 0.5
"""Seconds between two looks whether somebody else has answered: another process tells nobody."""
_ELSEWHERE = Done(results=())
"""Somebody else answered: the loop looks up what came of it."""


class EditorApprover:
    """The person of an `Agent`."""

    def __init__(self, rail: AsyncHandrail, editor: EditorLink) -> None:
        self._rail, self._editor = rail, editor
        self.tell: Callable[[], Awaitable[None]] = _nothing
        """Tells the editor of everything up to now: it has to know a call before it is asked about it."""
        self.cancel: Callable[[], object] = lambda: None
        """Ends the turn."""
        self._leaving = asyncio.Event()
        self._asking = False

    def leave(self) -> bool:
        """Asks nobody any more: what waits goes on waiting. Whether somebody was asked just now."""
        self._leaving.set()
        return self._asking

    async def __call__(self, parked: Parked) -> Done | Parked:
        """What came of the answers, or what still waits."""
        outcome: Done | Parked = parked
        try:
            while isinstance(outcome, Parked):
                self._asking = True
                await self.tell()
                came = await self._put(outcome)
                if came is None:
                    return outcome
                outcome = came
            return outcome
        finally:
            self._asking = False

    async def _put(self, parked: Parked) -> Done | Parked | None:
        """Asks the first of what waits; None where it is left for later."""
        if parked.requests:
            return await self._ask(parked.requests[0])
        if parked.questions and self._editor.forms:
            return await self._ask_question(parked.questions[0])
        return None

    async def _ask(self, request: PermissionRequest) -> Done | Parked | None:
        asked = self._editor.client.request_permission(
            session_id=self._rail.session_id,
            tool_call=build_card(request, self._editor.folder),
            options=build_options(request),
        )
        response = await self._first(asked, lambda: self._is_open(request))
        if response is None:
            return None if self._is_open(request) else _ELSEWHERE
        answer = parse_answer(response, request)
        if answer is None:
            self.cancel()
            await asyncio.Event().wait()  # the turn is cancelled, and with it this
        return await self._answer(request, answer or Answer(kind="deny"))

    async def _answer(self, request: PermissionRequest, answer: Answer) -> Done | Parked:
        try:
            return await finish_despite_cancel(self._rail.answer(request, answer), self._rail.cancel)
        except UsageError:
            if self._is_open(request):
                raise
            return _ELSEWHERE

    async def _ask_question(self, question: Question) -> Done | Parked | None:
        asked = self._editor.client.create_elicitation(
            message=question.question, mode=build_question_form(question, self._rail.session_id)
        )
        response = await self._first(asked, lambda: self._is_unanswered(question))
        if response is None:
            return None if self._is_unanswered(question) else _ELSEWHERE
        return await self._reply(question, parse_form_reply(response))

    async def _reply(self, question: Question, reply: Reply | None) -> Done | Parked | None:
        try:
            return await finish_despite_cancel(self._rail.reply(question, reply), self._rail.cancel)
        except UsageError:  # somebody was faster; or it is no reply, and the question is put in words
            return None if self._is_unanswered(question) else _ELSEWHERE

    async def _first(self, asked: Coroutine[Any, Any, Any], is_open: Callable[[], bool]) -> Any | None:
        """The editor's answer; None where it cannot give one, somebody else did, or nobody is to be asked any more."""
        answer = asyncio.ensure_future(asked)
        others = [asyncio.ensure_future(self._closed(is_open)), asyncio.ensure_future(self._leaving.wait())]
        try:
            await asyncio.wait({answer, *others}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        except (RequestError, ConnectionError, ValidationError):
            return None
        finally:
            for one in (answer, *others):
                one.cancel()
            await asyncio.wait({answer, *others})
            self._asking = False  # not before: what still waits must not be cancelled by who leaves now

    async def _closed(self, is_open: Callable[[], bool]) -> None:
        while await self._rail.in_pool(is_open):
            await asyncio.sleep(_POLL_SECONDS)

    def _is_open(self, request: PermissionRequest) -> bool:
        return any((one.id, one.revision) == (request.id, request.revision) for one in self._rail.rail.waiting())

    def _is_unanswered(self, question: Question) -> bool:
        return question.tool_call_id in {one.tool_call_id for one in self._rail.rail.waiting_questions()}


async def _nothing() -> None:
    """Nobody is told."""
