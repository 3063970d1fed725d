"""Who answers in the demo: the script. Each question is shown as a person would see it, and so is the answer."""

import os
import sys

from handrail.async_api import AsyncHandrail
from handrail.cli.running.view import RunView
from handrail.protocol.calls import Done, Parked
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.terminal.asking import say_kept
from handrail.terminal.choices import PromptState, render_choices
from handrail.terminal.request import render_request, render_title
from handrail.terminal.screen import Screen
from handrail.terminal.source import PromptResult
from handrail.terminal.told import is_kept, render_answer_line


class AutoApprover:
    """Says yes to everything, once."""

    def __init__(self, rail: AsyncHandrail, view: RunView, *, plain: bool) -> None:
        self._rail, self._view, self._plain = rail, view, plain
        self.seen: list[PermissionRequest] = []

    async def __call__(self, parked: Parked) -> Done | Parked:
        """Answers each request."""
        outcome: Done | Parked = parked
        while isinstance(outcome, Parked) and outcome.requests:
            self._view.end()
            request, answer = outcome.requests[0], Answer(kind="once")
            self._show(request, answer)
            outcome = await self._rail.answer(request, answer)
            results = outcome.results if isinstance(outcome, Done) else ()
            own = next((one for one in results if one.tool_call_id == request.tool_call_id), None)
            say_kept(PromptResult(request, answer), own, plain=self._plain)
        return outcome

    def _show(self, request: PermissionRequest, answer: Answer) -> None:
        self.seen.append(request)
        screen = Screen(sys.stderr, os.environ, plain=self._plain)
        lines = render_request(request, width=screen.width, plain=screen.plain)
        keys = render_choices(request, width=screen.width, plain=screen.plain, possible=PromptState(retry=True))
        screen.write(screen.framed_lines(render_title(request), [*lines, "", *keys]))
        screen.write(["y   (you would press this; in the demo the script does)"])
        if not is_kept(request, answer):
            screen.write([render_answer_line(request, answer, width=screen.size()[0] - 1, plain=screen.plain)])
