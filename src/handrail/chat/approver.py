"""Asks the person of a session."""

import signal
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from handrail.async_api import AsyncHandrail
from handrail.protocol.calls import Done, Parked
from handrail.protocol.permissions import ApproverReply, PermissionRequest, Question
from handrail.terminal.keyboard import KeyTiming, raise_on_signal
from handrail.terminal.permission_prompt import RequestHooks, TerminalApprover, reload_subject


class PromptPlace(Protocol):
    """The terminal of a session, as a prompt needs it."""

    plain: bool

    def end_live(self) -> None:
        """Ends everything that is live."""
        ...

    def lend_for_prompt(self, what: str) -> AbstractAsyncContextManager[KeyTiming]: ...

    def call_attention(self, text: str, *, waits: bool) -> None: ...

    def say(self, text: str) -> None: ...

    def leave_soon(self, code: int) -> None:
        """Ends the session once the turn is parked."""
        ...

    def write(self, rows: list[str]) -> None: ...


class ChatApprover:
    """Asks the person in the terminal of the session, once they stop typing."""

    def __init__(self, rail: AsyncHandrail, chat: PromptPlace) -> None:
        self._rail, self._chat = rail, chat
        self._terminal = TerminalApprover(
            RequestHooks(rail.rail.is_pending, rail.rail.outdated, rail.rail.retry),
            plain=chat.plain,
            shows_results=True,
        )

    async def ask(self, subject: PermissionRequest | Question, number: int, total: int) -> ApproverReply:
        chat = self._chat
        chat.end_live()
        is_question = isinstance(subject, Question)
        what = "A question waits." if is_question else "Approval needed."
        chat.call_attention(what.rstrip(".").lower(), waits=True)
        async with chat.lend_for_prompt(what) as timing:
            try:
                with raise_on_signal(signal.SIGHUP):
                    if isinstance(subject, Question):
                        return ApproverReply(subject, self._terminal.ask_question(subject))
                    return self._terminal.ask(subject, number, total, timing)
            except KeyboardInterrupt as interrupt:
                if interrupt.args != (signal.SIGINT,):
                    chat.leave_soon(128 + interrupt.args[0])
                noun = "question" if is_question else "request"
                chat.say(f"The {noun} still waits. This call has changed nothing. /continue asks again.")
                return ApproverReply(reload_subject(subject, self._rail.rail.waiting()))

    def report(self, reply: ApproverReply, outcome: Done | Parked | None) -> None:
        if isinstance(reply.subject, Question):
            if outcome is None:
                self._chat.say("The question was answered elsewhere first.")
            return
        self._chat.write(self._terminal.render_report(reply, outcome))
