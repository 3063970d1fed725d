"""The path of a framework's tool call to its result, or to a request for approval."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from hashlib import sha256
from itertools import count
from typing import Any, Literal, TypeVar
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from handrail.api import Handrail
from handrail.async_api import AsyncHandrail
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.protocol.results import Attachment, ToolResult, render_for_model
from handrail.protocol.schema import describe
from handrail.protocol.tool_spec import ToolDescription
from handrail.terminal.request_text import render_request

_PLAIN_KEY = re.compile(r"[!-.0-}]{1,64}")
_IMAGE_TYPES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_POLL_SECONDS = 0.02
Returned = TypeVar("Returned")
Rail = Handrail | AsyncHandrail
_begun: ContextVar[list[str]] = ContextVar("begun")
"""The ids of the calls that began in a wait of `run_in_pool`, which ends them if it is cancelled."""


class WaitingCall(msgspec.Struct, frozen=True):
    """A call that waits for approval."""

    name: str
    arguments: dict[str, Any]
    key: str
    request: PermissionRequest
    interim: ToolResult[Any]
    """The result for a model that cannot wait."""
    view: Literal["new", "shown", "changed"] = "new"
    """Whether an earlier look returned this request, so that an answer can be about it. `changed`: another one."""


Outcome = ToolResult[Any] | WaitingCall


class SessionWorker:
    """Works in a session, also beside an event loop."""

    def __init__(self, rail: Rail) -> None:
        self.rail = rail.rail if isinstance(rail, AsyncHandrail) else rail
        self._loop_side = rail if isinstance(rail, AsyncHandrail) else AsyncHandrail(rail)

    async def run_in_pool(self, work: Callable[..., Returned], *arguments: Any) -> Returned:
        """Works beside the event loop. If the wait is cancelled, so are the calls that began, which end first."""
        call_ids, context = list[str](), copy_context()
        context.run(_begun.set, call_ids)
        task = asyncio.ensure_future(self._loop_side.in_pool(lambda: context.run(work, *arguments)))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            while not task.done():  # a call that was about to begin misses the first look
                for call_id in tuple(call_ids):
                    with suppress(UsageError):  # the session closes
                        self.rail.cancel_call(call_id)
                await asyncio.wait([task], timeout=_POLL_SECONDS)
            if not task.cancelled():
                task.exception()  # otherwise asyncio warns that the exception was never retrieved
            raise


class FrameworkCalls(SessionWorker):
    """The calls that a framework makes in a session, each known by the framework's own key.

    A call that waits for approval is found again by its key, name and arguments, also by another process. So an
    approved preview is committed and the call does not run twice. After its result the same key is a new call.
    """

    def __init__(self, rail: Rail) -> None:
        super().__init__(rail)
        self._shown: dict[str, tuple[str, int]] = {}
        """The last request about each waiting call, with its revision."""

    def list_tools(self) -> list[ToolDescription]:
        return list(map(describe, self.rail.specs()))

    def run(self, name: str, arguments: dict[str, Any], key: str) -> Outcome:
        """Runs a call, or looks again at the same call if it waits."""
        key = clean_key(key)
        digest = build_call_id(name, arguments, key)
        deferred = self.rail.deferred_calls
        found = deferred.claim(digest) if deferred.has_any() else None
        call_id = found or f"{key}~{digest}~{uuid4().hex[:12]}"
        try:
            with deferred.expect(call_id, lambda: digest):
                outcome = self._call(name, arguments, key, call_id)
        except BaseException:
            deferred.release(call_id)
            raise
        if isinstance(outcome, WaitingCall):
            deferred.release(call_id)
            return replace(outcome, view="new" if found is None else self._compare(outcome.request))
        self._shown.pop(call_id, None)
        if deferred.has_any():
            deferred.forget(call_id)
        return outcome

    def run_once(self, name: str, arguments: dict[str, Any], key: str) -> Outcome:
        """Runs a call whose key is never used again. A repetition gets the first result, and nothing runs.

        Only a call that was cancelled starts again.
        """
        for attempt in count():
            call_id = build_call_id(name, arguments, f"{key} {attempt}")
            has_ended = self.rail.deferred_calls.find_end_time(call_id) is not None
            outcome = self._call(name, arguments, key, call_id)
            error = None if isinstance(outcome, WaitingCall) else outcome.error
            if not has_ended or error is None or error.code != "CANCELLED":
                return outcome
        raise AssertionError

    def answer(self, call: WaitingCall, answer: Answer) -> Outcome:
        """Answers the request of a call. Returns its result, or the call if there is another request."""
        note_begin(call.request.tool_call_id)
        answer_request(self.rail, call.request, answer)
        return self.run(call.name, call.arguments, call.key)

    def run_approved(self, name: str, arguments: dict[str, Any], key: str) -> Outcome:
        """Approves the request that was shown for a call. A call that was not shown waits for its own approval."""
        call = self.run(name, arguments, key)
        if isinstance(call, WaitingCall) and call.view == "shown":
            return self.answer(call, approve(call.request))
        return call

    def deny_rejected(self, find_reason: Callable[[str, str], str | None]) -> None:
        """Denies the requests that the framework rejected: it does not call their tools again.

        `find_reason` gets the name and the key of a call, and returns the reason if the call was rejected.
        """
        for request in self.rail.waiting():
            key, _, rest = request.tool_call_id.partition("~")
            reason = find_reason(request.called, key) if "~" in rest else None
            if reason is None:
                continue
            answer_request(self.rail, request, Answer(kind="deny", reason=reason or None))
            deferred = self.rail.deferred_calls
            if deferred.claim_one(request.tool_call_id, rest.partition("~")[0]):
                deferred.forget(request.tool_call_id)

    def _compare(self, request: PermissionRequest) -> Literal["shown", "changed"]:
        """Whether a request is the one that was shown last. Another process showed the first revision."""
        now = (request.id, request.revision)
        shown = self._shown.get(request.tool_call_id, (request.id, 0))
        self._shown[request.tool_call_id] = now
        return "shown" if shown == now else "changed"

    def _call(self, name: str, arguments: dict[str, Any], key: str, call_id: str) -> Outcome:
        note_begin(call_id)
        result = self.rail.call(name, arguments, tool_call_id=call_id, provider_call_id=key)
        if result.error is None or result.error.code != "PERMISSION_REQUIRED":
            return result
        requests, _ = self.rail.deferred_calls.list_pending(call_id)
        return WaitingCall(name, arguments, key, requests[0], result) if requests else result


def note_begin(call_id: str) -> None:
    """Notes a call that begins, or goes on."""
    _begun.get([]).append(call_id)


def answer_request(rail: Handrail, request: PermissionRequest | str, answer: Answer) -> None:
    """Answers a request, unless it was answered elsewhere meanwhile: that answer counts."""
    try:
        rail.answer(request, answer)
    except UsageError:
        if rail.is_pending(request):
            raise


def approve(request: PermissionRequest) -> Answer:
    """The approval of one call. Output that comes with changes that cannot be committed is kept without them."""
    return Answer(kind="once" if "once" in request.answers else "output")


def describe_request(request: PermissionRequest) -> dict[str, Any]:
    """What a person has to know to answer, as JSON. `text` is all of it for a terminal."""
    preview = request.preview
    return {
        "request": request.id,
        "revision": request.revision,
        "tool": request.called,
        "description": request.description,
        "reason": request.reason,
        "hosts": list(request.hosts),
        "preview": "" if preview is None else preview.text,
        "output": "" if preview is None else preview.output,
        "text": "\n".join(render_request(request, width=None, diff=None, plain=True)),
    }


def render_result(result: ToolResult[Any]) -> str:
    """The text for the model. Some providers refuse empty results."""
    return render_for_model(result) or result.summary or "(no output)"


def list_images(result: ToolResult[Any]) -> list[Attachment]:
    """The images that models take."""
    return [one for one in result.attachments if one.mime in _IMAGE_TYPES and one.content]


def clean_key(key: str) -> str:
    """The key as part of a call id."""
    return key if _PLAIN_KEY.fullmatch(key) else sha256(key.encode("utf-8", "replace")).hexdigest()


def build_call_id(name: str, arguments: Any, key: str) -> str:
    """Identifies a call by its name, arguments and key."""
    return sha256(msgspec.json.encode([name, arguments, key], order="sorted")).hexdigest()[:32]
