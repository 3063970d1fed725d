"""Runs the calls of clients, whatever they came by.

Clients know no ids of ours. A call that was left waiting is found again by its name and arguments, and what came of it
is handed over once: a result is a call's until `delivered`, and only then is the same call a new one.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.mcp.outcomes import FormAnswer, ParkedCall, UnansweredCall, list_revisions
from handrail.protocol.calls import Done
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Question
from handrail.protocol.results import ToolResult

if TYPE_CHECKING:
    from handrail.api import Handrail
    from handrail.mcp.permission.signing import Signer

KEPT_FOR = timedelta(days=1)
"""How long the result of a call that was left waiting is there for the same call: an older one tells of other times."""
_ASKING = frozenset(("PERMISSION_REQUIRED", "UNAVAILABLE"))
_KEEPING = frozenset(("once", "session", "workspace"))


class ClientCalls:
    """The calls of one client. Every method may be called by any thread.

    Of what they give: a result is to be handed to the client, and then `delivered`; of what asks, somebody sees to it
    that it is answered or left.
    """

    def __init__(self, rail: "Handrail") -> None:
        self.rail = rail
        self._left = rail.left_calls
        self._held: set[str] = set()
        """The calls that are in hand here and waited at least once."""

    def begin(
        self, name: str, arguments: Any, call_id: str | None = None, met: Callable[[str], object] = str
    ) -> ToolResult[Any] | UnansweredCall:
        """Runs a call; of one that was left waiting before, what came of it since. `met` gets the id of that one."""
        found = self._taken_up(name, arguments, met) if self._left.has_any() else None
        if found is not None:
            return found
        call_id = call_id or self.rail.new_call_id()
        with self._left.expect(call_id, lambda: digest_call(name, arguments)):
            result = self.rail.call(name, arguments, tool_call_id=call_id)
        asks = self._waits(result, digest_call(name, arguments)) if _may_ask(result) else None
        if asks is None:
            return result
        if asks.digest:
            self._held.add(asks.call_id)
        return asks

    def answer(self, asks: UnansweredCall, said: FormAnswer) -> ToolResult[Any] | UnansweredCall:
        """Gives the answer to the request, and runs what waited for it; it may ask again. After a yes to a preview that
        is out of date, the command is tried again, and the new preview asks."""
        subject, outcome = (*asks.questions, *asks.requests)[0], None
        with suppress(UsageError):  # the answer is not one of those that the request takes: it still waits
            if not self._retry_outdated(subject, said):
                outcome = self.rail.try_answer(ApproverReply(subject, said.answer))
        if not isinstance(outcome, Done):
            return self.poll(asks)
        return next(result for result in outcome.results if result.tool_call_id == asks.call_id)

    def poll(self, asks: UnansweredCall) -> ToolResult[Any] | UnansweredCall:
        """What has become of it: its result where somebody answered elsewhere, what it asks now, or it itself."""
        if self._left.status(asks.call_id)[1]:
            return asks
        result = self.rail.call(asks.interim.name, {}, tool_call_id=asks.call_id)  # by its id: nothing runs twice
        if self._left.status(asks.call_id)[0] == "finished":
            return result
        now = self._waits(result, asks.digest)
        return asks if now is None or now.shown == asks.shown else now

    def has_changed(self, asks: UnansweredCall) -> bool:
        """Whether `look` has something else to say. Quick; it runs nothing."""
        state, alive = self._left.status(asks.call_id)
        if state != "parked":
            return not alive
        requests, questions = self._left.list_pending(asks.call_id)
        return list_revisions(requests, questions) != asks.shown

    def park(self, asks: UnansweredCall) -> ParkedCall:
        """Leaves it waiting: what the client is told. The same call again gets what came of it."""
        from handrail.mcp.permission.words import build_parked_result  # noqa: PLC0415  most calls ask nobody

        self.release(asks.call_id)
        return ParkedCall(build_parked_result(asks, self._left.folder))

    def release(self, call_id: str) -> None:
        """Leaves a call to whoever makes it again; nothing happens where it is not in hand here."""
        if call_id in self._held:
            self._held.discard(call_id)
            self._left.release(call_id)

    def mark_delivered(self, call_id: str) -> None:
        """The client has the result of a call: from here on the same call is a new one. Who is killed between the two
        leaves the result to the same call; so it may be told twice then, and is never lost nor run twice."""
        if call_id in self._held:
            self._held.discard(call_id)
            self._left.forget(call_id)

    def settle_delivery(self, result: ToolResult[Any], *, reached: bool) -> None:
        """What became of a result on its way: one that did not reach the client is kept for the same call. But not that
        the call was cancelled: whoever makes it again wants it to run."""
        ended = result.error is not None and result.error.code == "CANCELLED"
        if reached or ended:
            self.mark_delivered(result.tool_call_id)
        else:
            self.release(result.tool_call_id)

    def has_claimed(self, call_id: str) -> bool:
        """Whether a call waited at least once, and is in hand here."""
        return call_id in self._held

    def claim(self, call_id: str, name: str, digest: str) -> ToolResult[Any] | UnansweredCall | None:
        """One call that was left waiting; None where it is in another hand, was handed over, or is no such call."""
        return self._found(call_id, name, digest) if digest and self._left.claim_one(call_id, digest) else None

    def refresh(self, asks: UnansweredCall) -> ToolResult[Any] | UnansweredCall | None:
        """What a waiting call asks now that the same call was made again: an old preview is replaced. None if there can
        be no preview now: then it is a new call."""
        try:
            with suppress(UsageError):  # somebody was faster to answer, or to have it tried again
                for request in asks.requests:
                    self.rail.refresh(request.id)
            return self.poll(asks)
        except BaseException as error:
            if isinstance(error, ToolError) and error.code != "CANCELLED":
                self.mark_delivered(asks.call_id)
                return None
            self.release(asks.call_id)
            raise

    @cached_property
    def signer(self) -> "Signer":
        """Signs what a client keeps between two rounds of a call."""
        from handrail.mcp.permission.signing import load_signer  # noqa: PLC0415  few calls have rounds

        return load_signer(self._left.folder)

    @property
    def folder(self) -> str:
        """Of the session."""
        return self._left.folder

    @property
    def version(self) -> int:
        """A number that changes when another process writes to the session's journal."""
        return self._left.version()

    def _taken_up(
        self, name: str, arguments: Any, met: Callable[[str], object]
    ) -> ToolResult[Any] | UnansweredCall | None:
        digest = digest_call(name, arguments)
        while digest and (call_id := self._left.claim(digest)) is not None:
            found = self._found(call_id, name, digest)
            if isinstance(found, UnansweredCall):
                met(call_id)
                found = self.refresh(found)
            if found is not None:
                return found
        return None

    def _found(self, call_id: str, name: str, digest: str) -> ToolResult[Any] | UnansweredCall | None:
        """What a call that is in hand now has come to; None, and it is forgotten, where it is of no use here."""
        from handrail.mcp.permission.words import add_age, build_running_result  # noqa: PLC0415  as above

        self._held.add(call_id)
        try:
            spec = self.rail.spec(name)
            interim = build_running_result(call_id, name, spec.version if spec is not None else "")
            found = self.poll(UnansweredCall(call_id=call_id, interim=interim, digest=digest))
            if self._counts(found):
                ran = self._left.find_run_time(call_id) if not isinstance(found, UnansweredCall) and found.ok else None
                return found if isinstance(found, UnansweredCall) or ran is None else add_age(found, ran)
            self.mark_delivered(call_id)
        except BaseException:
            self.release(call_id)
            raise
        return None

    def _counts(self, found: ToolResult[Any] | UnansweredCall) -> bool:
        """A result counts for a while; a request where a yes would: a command that would get other variables here than
        where it was asked about is asked about anew."""
        if isinstance(found, UnansweredCall):
            return not any(self.rail.would_differ(one.environment) for one in found.requests)
        ended = self._left.find_end_time(found.tool_call_id)
        return ended is not None and datetime.now(UTC) - ended < KEPT_FOR

    def _waits(self, result: ToolResult[Any], digest: str) -> UnansweredCall | None:
        """The call of an interim result; None where it does not wait."""
        requests, questions = self._left.list_pending(result.tool_call_id)
        if not requests and not questions:
            return None
        return UnansweredCall(
            call_id=result.tool_call_id, interim=result, requests=requests, questions=questions, digest=digest
        )

    def _retry_outdated(self, subject: PermissionRequest | Question, said: FormAnswer) -> bool:
        """Retries a command whose preview can no longer be committed. Returns whether it did."""
        if isinstance(subject, Question) or not isinstance(said.answer, Answer) or said.answer.kind not in _KEEPING:
            return False
        if subject.preview_id is None or not self.rail.outdated(subject):
            return False
        try:
            self.rail.retry(subject.id)
        except ToolError:
            return False  # the answer then fails with the same error
        return True


def has_answer(params: Mapping[str, Any]) -> bool:
    """Whether a call says what a person answered to the one before it, by rounds."""
    return params.get("requestState") is not None or params.get("inputResponses") is not None


def digest_call(name: str, arguments: Any) -> str:
    """What the same call is told by, whatever the order of its arguments; nothing where they are no JSON."""
    try:
        spelled = msgspec.json.encode([name, {} if arguments is None else arguments], order="sorted")
    except (TypeError, ValueError, RecursionError):
        return ""
    from hashlib import sha256  # noqa: PLC0415  only where something waits; a client waits for what is loaded before

    return sha256(spelled).hexdigest()


def _may_ask(result: ToolResult[Any]) -> bool:
    return result.error is not None and result.error.code in _ASKING
