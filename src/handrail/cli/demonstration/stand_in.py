"""Answers in the demo: the script shows each request as a person would see it, with the answer."""

import os
import sys

from handrail.cli.running.view import RunView
from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Question
from handrail.terminal.permission_prompt import TerminalApprover
from handrail.terminal.request_text import (
    PromptState,
    is_kept,
    render_answer_line,
    render_choices,
    render_request,
    render_title,
)
from handrail.terminal.screen import Screen


class AutoApprover:
    """Approves every request, once."""

    def __init__(self, view: RunView, *, plain: bool) -> None:
        self._view, self._plain = view, plain
        self.report = TerminalApprover(plain=plain).report
        self.seen: list[PermissionRequest] = []

    async def ask(self, subject: PermissionRequest | Question, _number: int, _total: int) -> ApproverReply:
        if isinstance(subject, Question):
            return ApproverReply(subject)
        self._view.end()
        answer = Answer(kind="once")
        self._show(subject, answer)
        return ApproverReply(subject, answer)

    def _show(self, request: PermissionRequest, answer: Answer) -> None:
        self.seen.append(request)
        screen = Screen(sys.stderr, os.environ, plain=self._plain)
        lines = render_request(request, width=screen.width, plain=screen.plain)
        keys = render_choices(request, width=screen.width, plain=screen.plain, possible=PromptState(retry=True))
        screen.write(screen.framed_lines(render_title(request), [*lines, "", *keys]))
        screen.write(["y   (you would press this; in the demo the script does)"])
        if not is_kept(request, answer):
            screen.write([render_answer_line(request, answer, width=screen.size()[0] - 1, plain=screen.plain)])
