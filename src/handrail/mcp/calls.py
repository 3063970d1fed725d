"""Tool calls of MCP clients.

MCP has no stable call id, so a parked call is found again by a digest of its name and arguments. Its result stays
stored until `mark_delivered`. After that the same call is a new one.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from handrail.protocol.calls import Done
from handrail.protocol.errors import ErrorInfo, ToolError, UsageError
from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Question, Reply
from handrail.protocol.records import format_age
from handrail.protocol.results import Artifacts, Meta, ToolResult

if TYPE_CHECKING:
    from handrail.api import Handrail

KEPT_FOR = timedelta(days=1)
"""How long the result of a parked call stays for the same call."""
_ASKING = frozenset(("PERMISSION_REQUIRED", "UNAVAILABLE"))
_AGAIN = "After that, repeat the call with the same arguments to get its result."
_UNDER_WAY = "The user answered, and the call runs now. Repeat the call to get the result."


class UnansweredCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for an answer."""

    call_id: str
    interim: ToolResult[Any]
    """The result as long as there is no answer."""
    requests: tuple[PermissionRequest, ...] = ()
    questions: tuple[Question, ...] = ()
    digest: str = ""
    again: bool = False
    """Whether the last answer was unclear."""

    @property
    def revisions(self) -> tuple[tuple[str, int], ...]:
        """The ids of its requests and questions. An answer is bound to them."""
        return _list_revisions(self.requests, self.questions)


class ParkedCall(msgspec.Struct, frozen=True):
    """A call that was left unanswered. Nothing here owns it any more."""

    interim: ToolResult[Any]


Outcome = ToolResult[Any] | UnansweredCall | ParkedCall


class ClientCalls:
    """The calls of one client. Thread-safe.

    Whoever gets a result delivers it. Whoever gets an unanswered call has it answered or parked.
    """

    def __init__(self, rail: "Handrail") -> None:
        self.rail = rail
        self.deferred = rail.deferred_calls
        self._claimed: set[str] = set()
        """The ids of calls that waited at least once, and that this process owns."""

    def begin(
        self, name: str, arguments: Any, call_id: str | None = None, on_claim: Callable[[str], object] = str
    ) -> ToolResult[Any] | UnansweredCall:
        """Runs a call. The same call that waited before is resumed instead: `on_claim` gets its id."""
        found = self._resume(name, arguments, on_claim) if self.deferred.has_any() else None
        if found is not None:
            return found
        call_id = call_id or self.rail.new_call_id()
        with self.deferred.expect(call_id, lambda: digest_call(name, arguments)):
            result = self.rail.call(name, arguments, tool_call_id=call_id)
        if result.error is None or result.error.code not in _ASKING:
            return result
        call = self._find_unanswered(result, digest_call(name, arguments))
        if call is not None and call.digest:
            self._claimed.add(call.call_id)
        return call or result

    def answer(self, call: UnansweredCall, answer: Answer | Reply) -> ToolResult[Any] | UnansweredCall:
        """Answers the first request or question, and runs the call unless others wait.

        If the preview of an approved command is out of date, the command is retried, and the new preview asks.
        """
        subject, settled = (*call.questions, *call.requests)[0], None
        with suppress(UsageError):  # the request does not take this answer and still waits
            if not self._retry_outdated(subject, answer):
                settled = self.rail.settle_reply(ApproverReply(subject, answer))
        if settled is None or not isinstance(settled.answered, Done):
            return self.poll(call)
        return next(result for result in settled.answered.results if result.tool_call_id == call.call_id)

    def poll(self, call: UnansweredCall) -> ToolResult[Any] | UnansweredCall:
        """The result if it was answered elsewhere, or the call with its present requests."""
        if self.deferred.status(call.call_id)[1]:
            return call
        result = self.rail.call(call.interim.name, {}, tool_call_id=call.call_id)  # by its id: nothing runs twice
        if self.deferred.status(call.call_id)[0] == "finished":
            return result
        now = self._find_unanswered(result, call.digest)
        return call if now is None or now.revisions == call.revisions else now

    def has_changed(self, call: UnansweredCall) -> bool:
        """Whether `poll` would return something else. Quick: it runs nothing."""
        state, alive = self.deferred.status(call.call_id)
        if state != "parked":
            return not alive
        return _list_revisions(*self.deferred.list_pending(call.call_id)) != call.revisions

    def park(self, call: UnansweredCall) -> ParkedCall:
        """Leaves a call unanswered. The same call gets its result later."""
        self.release(call.call_id)
        error = call.interim.error
        if error is None or not call.revisions:
            return ParkedCall(call.interim)
        reason = error.message if call.requests else "The question waits for a reply. There is no result yet."
        commands = self.describe_answer_commands(call)
        message = f"{reason} Only the user can answer: {commands}. {_AGAIN}"
        return ParkedCall(replace(call.interim, content=message, error=replace(error, message=message)))

    def describe_answer_commands(self, call: UnansweredCall) -> str:
        """The shell commands that answer a call."""
        if call.requests:
            request = call.requests[0]
            short = self.deferred.shorten_id(request.id)
            option = "" if "once" in request.answers else " --output-only"
            return f"handrail approvals allow {short}{option}, or: handrail approvals deny {short} --reason TEXT"
        if call.questions:
            short = self.deferred.shorten_id(call.questions[0].tool_call_id)
            return f"handrail approvals reply {short} NUMBER-OR-TEXT"
        return "handrail approvals"

    def release(self, call_id: str) -> None:
        """Gives up a claimed call, for the next same call."""
        if call_id in self._claimed:
            self._claimed.discard(call_id)
            self.deferred.release(call_id)

    def mark_delivered(self, call_id: str) -> None:
        """The client has the result, so the same call is a new one from now on. After a kill just before, the client
        gets the result twice: it is never lost and never runs twice."""
        if call_id in self._claimed:
            self._claimed.discard(call_id)
            self.deferred.forget(call_id)

    def settle_delivery(self, result: ToolResult[Any], *, reached: bool) -> None:
        """Keeps a result that did not reach the client for the same call, unless the call was cancelled."""
        cancelled = result.error is not None and result.error.code == "CANCELLED"
        if reached or cancelled:
            self.mark_delivered(result.tool_call_id)
        else:
            self.release(result.tool_call_id)

    def has_claimed(self, call_id: str) -> bool:
        return call_id in self._claimed

    def claim(self, call_id: str, name: str, digest: str) -> ToolResult[Any] | UnansweredCall | None:
        """Takes over a parked call. None if another process has it, it was delivered, or it is another call."""
        return self._load(call_id, name, digest) if digest and self.deferred.claim_one(call_id, digest) else None

    def refresh(self, call: UnansweredCall) -> ToolResult[Any] | UnansweredCall | None:
        """Replaces an old preview of a call that was repeated. None if it has to start as a new call."""
        try:
            with suppress(UsageError):  # answered or retried elsewhere meanwhile
                for request in call.requests:
                    self.rail.refresh(request.id)
            return self.poll(call)
        except BaseException as error:
            if isinstance(error, ToolError) and error.code != "CANCELLED":
                self.mark_delivered(call.call_id)
                return None
            self.release(call.call_id)
            raise

    def _resume(
        self, name: str, arguments: Any, on_claim: Callable[[str], object]
    ) -> ToolResult[Any] | UnansweredCall | None:
        digest = digest_call(name, arguments)
        while digest and (call_id := self.deferred.claim(digest)) is not None:
            found = self._load(call_id, name, digest)
            if isinstance(found, UnansweredCall):
                on_claim(call_id)
                found = self.refresh(found)
            if found is not None:
                return found
        return None

    def _load(self, call_id: str, name: str, digest: str) -> ToolResult[Any] | UnansweredCall | None:
        """The state of a claimed call. None if it is of no use any more: then it is forgotten."""
        self._claimed.add(call_id)
        try:
            spec = self.rail.spec(name)
            interim = _build_running_result(call_id, name, spec.version if spec is not None else "")
            found = self.poll(UnansweredCall(call_id=call_id, interim=interim, digest=digest))
            if self._is_useful(found):
                return found if isinstance(found, UnansweredCall) else self._add_age(found)
            self.mark_delivered(call_id)
        except BaseException:
            self.release(call_id)
            raise
        return None

    def _is_useful(self, found: ToolResult[Any] | UnansweredCall) -> bool:
        """A result counts for a day, unless its request expired. A request counts if the command would get the same
        variables here."""
        if isinstance(found, UnansweredCall):
            return not any(self.rail.would_differ(request.environment) for request in found.requests)
        if self.deferred.has_expired(found.tool_call_id):
            return False
        ended = self.deferred.find_end_time(found.tool_call_id)
        return ended is not None and datetime.now(UTC) - ended < KEPT_FOR

    def _add_age(self, result: ToolResult[Any]) -> ToolResult[Any]:
        """Adds the age of a command's result: files may have changed since."""
        ran = self.deferred.find_run_time(result.tool_call_id) if result.ok else None
        if ran is None:
            return result
        note = f"This command ran {format_age(datetime.now(UTC) - ran)} ago. To run it again, repeat the call."
        return replace(result, warnings=(*result.warnings, note))

    def _find_unanswered(self, interim: ToolResult[Any], digest: str) -> UnansweredCall | None:
        call_id = interim.tool_call_id
        requests, questions = self.deferred.list_pending(call_id)
        if not requests and not questions:
            return None
        return UnansweredCall(call_id=call_id, interim=interim, requests=requests, questions=questions, digest=digest)

    def _retry_outdated(self, subject: PermissionRequest | Question, answer: Answer | Reply) -> bool:
        """Retries a command whose preview cannot be committed any more. Returns whether it did."""
        if isinstance(subject, Question) or not isinstance(answer, Answer) or not answer.approves:
            return False
        if subject.preview_id is None or not self.rail.outdated(subject):
            return False
        try:
            self.rail.retry(subject.id)
        except ToolError:
            return False  # the answer will fail with the same error
        return True


def has_answer(params: Mapping[str, Any]) -> bool:
    """Whether a request brings the answer to an earlier round."""
    return params.get("requestState") is not None or params.get("inputResponses") is not None


def digest_call(name: str, arguments: Any) -> str:
    """Identifies a call by its name and arguments in any order. Empty if they are no JSON."""
    try:
        spelled = msgspec.json.encode([name, {} if arguments is None else arguments], order="sorted")
    except (TypeError, ValueError, RecursionError):
        return ""
    from hashlib import sha256  # noqa: PLC0415  few calls wait, and all clients wait for the start

    return sha256(spelled).hexdigest()


def _list_revisions(
    requests: tuple[PermissionRequest, ...], questions: tuple[Question, ...]
) -> tuple[tuple[str, int], ...]:
    return (*((one.id, one.revision) for one in requests), *((one.tool_call_id, 0) for one in questions))


def _build_running_result(call_id: str, name: str, version: str) -> ToolResult[Any]:
    """The interim result of a call that another process runs."""
    return ToolResult(
        tool_call_id=call_id,
        name=name,
        version=version,
        ok=False,
        title=name,
        summary=_UNDER_WAY,
        content=_UNDER_WAY,
        data=None,
        error=ErrorInfo(code="UNAVAILABLE", message=_UNDER_WAY, details=None, retryable=True),
        meta=Meta(truncated=False),
        artifacts=Artifacts(),
        attachments=(),
        warnings=(),
        duration_ms=0.0,
    )
