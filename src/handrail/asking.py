"""Runs a batch, and puts its questions to whoever is there: until it is done, or has to wait."""

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.runtime import approvals
from handrail.runtime.batch import answer_request, run_batch
from handrail.runtime.session import Session

if TYPE_CHECKING:
    from handrail.terminal.source import PromptResult

OnPermission = Callable[[PermissionRequest], Answer | AnswerKind | None]
"""Is asked about each request; None leaves it for later."""


class ApprovalDriver:
    """Asks whoever the program named, else the person at its terminal."""

    def __init__(
        self,
        session: Session,
        on_permission: OnPermission | None,
        outdated: Callable[[PermissionRequest], tuple[str, ...]],
        retry: Callable[[str, str | None], PermissionRequest],
        *,
        unattended: bool,
    ) -> None:
        """`outdated` and `retry`: what the person at the terminal may want of a request before they answer."""
        self._session = session
        self._on_permission = on_permission
        self._outdated = outdated
        self._retry = retry
        self._unattended = unattended

    def run(self, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
        """Runs the calls, with every answer that can be had now. `fresh`: no id can be known already."""
        outcome = run_batch(self._session, calls, fresh)
        if isinstance(outcome, Done):
            return outcome
        of = len(outcome.requests)
        while isinstance(outcome, Parked) and outcome.requests and self._can_ask():
            said = self._ask(outcome.requests[0], of - len(outcome.requests) + 1, of)
            request, answer = said.request, said.answer
            if answer is None and self._is_open(request):
                break
            answered = self._answer(request, answer) if answer else None
            if answer and answered is None and self._on_permission is None:
                _terminal().say_answered_elsewhere(request)
            # What came of it is looked up: the batch may be larger, and somebody else may have been faster to answer.
            outcome = answered if isinstance(answered, Parked) else run_batch(self._session, calls, fresh=False)
            if answered is not None and self._on_permission is None:
                _terminal().say_kept(said, _result_of(outcome, request))
        return outcome

    def _can_ask(self) -> bool:
        """Whether there is somebody to ask."""
        if self._on_permission is not None:
            return True
        return not self._unattended and _terminal().is_person_present()

    def _ask(self, request: PermissionRequest, number: int, of: int) -> "PromptResult":
        from handrail.terminal.source import PromptResult, RequestHooks  # noqa: PLC0415  most calls ask nobody

        if self._on_permission is None:
            source = RequestHooks(self._is_open, self._outdated, self._retry)
            return _terminal().ask_on_terminal(request, number, of, source=source)
        said = self._on_permission(request)
        return PromptResult(request, said if isinstance(said, Answer) or said is None else Answer(kind=said))

    def _answer(self, request: PermissionRequest, said: Answer) -> Done | Parked | None:
        """None where somebody else was faster, be it to answer or to have it tried again."""
        try:
            return answer_request(self._session, request.id, bind_answer(request, said))
        except UsageError:
            if self._is_open(request):
                raise
            return None

    def _is_open(self, request: PermissionRequest) -> bool:
        """Whether it still waits, as it was shown."""
        waiting = approvals.load_parked(self._session, request.batch_id).requests
        return any((one.id, one.revision) == (request.id, request.revision) for one in waiting)


def bind_answer(request: PermissionRequest, answer: Answer) -> Answer:
    """The answer as one to what the request shows, unless it says itself what it is to."""
    if answer.revision is not None or not request.revision:
        return answer
    return replace(answer, revision=request.revision)


def _result_of(outcome: Done | Parked, request: PermissionRequest) -> ToolResult[Any] | None:
    """What came of the call that a request was about; None while it waits."""
    results = outcome.results if isinstance(outcome, Done) else ()
    return next((one for one in results if one.tool_call_id == request.tool_call_id), None)


def _terminal() -> ModuleType:
    from handrail.terminal import asking  # noqa: PLC0415  most calls ask nobody

    return asking
