"""A typed client of the HTTP API of `handrail serve`.

client = Client("http://127.0.0.1:7420", token)
for event in client.follow(client.create_task("Why does the test fail?").id):
    print(event)
"""

import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from inspect import Parameter, Signature
from types import NoneType
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from handrail.protocol.errors import HandrailError, UsageError, build_install_command
from handrail.protocol.events import AnyEvent
from handrail.protocol.permissions import AnswerKind, PermissionRequest
from handrail.protocol.wire import UNREADABLE, Json, Wire, decode_json, encode
from handrail.server import wire
from handrail.server.routes import ROUTES

_Answer = TypeVar("_Answer")
_ANY_KIND = Parameter.POSITIONAL_OR_KEYWORD
_FIRST_PAUSE, _LAST_PAUSE = 0.1, 5.0
_FIRST_REFUSAL = 400
_REFUSED = range(4_400, 4_500)
"""Close codes that are a status of HTTP and 4,000."""


class ApiException(HandrailError):  # noqa: N818  ApiError is the message on the wire
    """The server refused a request."""

    def __init__(self, status: int, code: str, message: str, details: Json = None) -> None:
        super().__init__(f"{code} ({status}): {message}")
        self.status = status
        self.code = code
        self.message = message
        self.details = details


class _Method(Generic[_Answer]):
    """A method of the client, made from a row of the server's table of routes.

    Its arguments are the parts of the path, the fields of the body, and the query parameters, in this order or by name.
    The whole body may stand in for its fields.
    """

    def __init__(self, answer: type[_Answer], handler: str) -> None:
        self._answer = answer
        self._route = next(route for route in ROUTES if route.handler == handler)
        self._parts: list[str] = re.findall(r"\{(\w+)\}", self._route.path)
        fields = () if self._route.body is None else self._route.body.__struct_fields__
        optional = [Parameter(name, _ANY_KIND, default=None) for name in (*fields, *self._route.query)]
        self._signature = Signature([*(Parameter(name, _ANY_KIND) for name in self._parts), *optional])

    def __get__(self, client: "Client", _owner: type["Client"]) -> Callable[..., _Answer]:
        return partial(self._call, client)

    def _call(self, client: "Client", *values: Any, **named: Any) -> Any:
        route, given = self._route, dict(self._signature.bind(*values, **named).arguments)
        path = route.path.format(**{name: quote(str(given.pop(name)), safe="") for name in self._parts})
        query = {name: given.pop(name) for name in route.query if name in given}
        first = next(iter(given.values()), None)
        body = first if route.body is None or isinstance(first, route.body) else route.body(**given)
        content = client.send(route.method, path, query, body)
        return content or None if self._answer in {NoneType, bytes} else decode_json(content, self._answer)


class Client:
    """The API with the token of one caller. Each request has a connection of its own, so threads may share a client.

    `timeout` is in seconds, and holds for each read. ApiException if the server refuses a request, OSError if it
    cannot be reached.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 60.0, context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError(f"the address of a server begins with http:// or https://, not {url[:80]!r}")
        self._address, self._path = parts.netloc, parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = timeout
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None

    info = _Method(wire.ServerInfo, "info.get_info")
    list_tasks = _Method(wire.TaskList, "tasks.list_tasks")
    create_task = _Method(wire.Task, "tasks.create_task")
    """Without a prompt, the task waits for one."""
    get_task = _Method(wire.Task, "tasks.get_task")
    delete_task = _Method(NoneType, "tasks.delete_task")
    prompt = _Method(wire.Accepted, "tasks.prompt_task")
    resume = _Method(wire.Accepted, "tasks.resume_task")
    cancel = _Method(wire.Accepted, "tasks.cancel_task")
    fork = _Method(wire.Task, "tasks.fork_task")
    set_mode = _Method(wire.Task, "tasks.set_mode")
    list_events = _Method(wire.EventPage, "events.list_events")
    get_trace = _Method(wire.Traces, "trace.get_trace")
    get_raw_output = _Method(bytes, "events.get_output")
    get_inbox = _Method(wire.InboxList, "approvals.get_inbox")
    get_request = _Method(wire.RequestDetail, "approvals.get_request")
    retry = _Method(wire.RequestDetail, "approvals.retry_request")
    revoke = _Method(NoneType, "approvals.revoke_grant")
    list_changes = _Method(wire.ChangeList, "changes.list_changes")
    get_change = _Method(wire.ChangeDetail, "changes.get_change")
    undo = _Method(wire.UndoOutcome, "changes.undo_change")
    """`preview=True` only tells its effect. `resolve` is `later` or `lines`, as `Handrail.undo` explains."""
    redo = _Method(wire.UndoOutcome, "changes.redo_change")
    list_processes = _Method(wire.ProcessList, "processes.list_processes")
    get_process_output = _Method(wire.ProcessOutput, "processes.get_output")
    stop_process = _Method(wire.ProcessList, "processes.stop_process")
    list_audit = _Method(wire.AuditPage, "audit.list_records")
    verify_audit = _Method(wire.AuditCheck, "audit.verify")
    explain = _Method(wire.PolicyAnswer, "policy.explain")
    try_rule = _Method(wire.RuleEffect, "policy.try_rule")
    list_tools = _Method(wire.ToolList, "calls.list_tools")
    check_call = _Method(wire.CallCheck, "calls.check_call")
    call = _Method(wire.CallOutcome, "calls.run_call")
    _answer = _Method(wire.AnswerOutcome, "approvals.answer_request")
    _reply = _Method(wire.AnswerOutcome, "approvals.reply_to_question")

    def answer(self, request: PermissionRequest, kind: AnswerKind, **more: Any) -> wire.AnswerOutcome:
        """Answers the revision that the request shows. `reason` is for a denial, `grants` for a scope."""
        return self._answer(request.id, kind, revision=request.revision, **more)

    def reply(self, question: str, *chosen: str, text: str | None = None) -> wire.AnswerOutcome:
        """Replies to a question. Without options and text, puts it aside."""
        return self._reply(question, chosen, text=text)

    # Following

    def follow(self, task: str, after: int = 0) -> Iterator[AnyEvent]:
        """The events of a task after a number: the stored ones, then each new one, until you stop to iterate.

        After a lost connection it connects again and goes on after the last event. OSError if the server stays
        unreachable for `timeout` seconds. Needs the package `websockets`.
        """
        frames = self.follow_frames(task, after)
        return (frame.event for frame in frames if isinstance(frame, wire.EventFrame))

    def follow_frames(self, task: str, after: int = 0) -> Iterator[wire.ServerFrame]:
        """The same with all other frames: `CaughtUpFrame`, `TaskFrame` at each change of its state, and so on."""
        try:
            from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus  # noqa: PLC0415
        except ImportError:
            raise UsageError(f"to follow a task, install websockets: {build_install_command('server')}") from None
        pause, last_contact = _FIRST_PAUSE, 0.0
        while True:
            try:
                with self._connect(task, after) as socket:
                    while True:
                        frame = _decode_frame(socket.recv())
                        pause, last_contact = _FIRST_PAUSE, time.monotonic()
                        yield frame
                        after = frame.event.seq if isinstance(frame, wire.EventFrame) else after
            except ConnectionClosed as closed:
                code, reason = (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd is not None else (1006, "")
                if code in _REFUSED and code != wire.Closing.SLOW:
                    raise ApiException(code - 4_000, "REFUSED", reason or "The server closed the stream.") from None
            except InvalidStatus as refused:
                raise _build_exception(refused.response.status_code, bytes(refused.response.body)) from None
            except (OSError, EOFError, InvalidHandshake) as lost:
                if time.monotonic() - last_contact > self._timeout:
                    raise ConnectionError(f"the server cannot be reached: {lost}") from lost
            time.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)

    # The wire

    def send(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Wire | None = None) -> bytes:
        """Sends any request. Returns the body of the response."""
        given = urlencode({name: value for name, value in (query or {}).items() if value is not None})
        headers = self._headers | ({"Content-Type": "application/json"} if body is not None else {})
        if self._context is not None:
            connection = HTTPSConnection(self._address, timeout=self._timeout, context=self._context)
        else:
            connection = HTTPConnection(self._address, timeout=self._timeout)
        try:
            connection.request(method, f"{self._path}{path}?{given}", body and encode(body), headers)
            response = connection.getresponse()
            content = response.read()
        except HTTPException as error:
            raise ConnectionError(f"the server sent no valid response: {error!r}") from None
        finally:
            connection.close()
        if response.status >= _FIRST_REFUSAL:
            raise _build_exception(response.status, content)
        return content

    def _connect(self, task: str, after: int):  # the type is that of the library
        from websockets.sync.client import connect  # noqa: PLC0415  optional

        scheme = "ws" if self._context is None else "wss"
        return connect(
            f"{scheme}://{self._address}{self._path}/ws/{quote(task)}?after={after}",
            additional_headers=self._headers,
            ssl=self._context,
            compression=None,
            max_size=None,
            open_timeout=self._timeout,
            proxy=None,
        )


def _build_exception(status: int, content: bytes) -> ApiException:
    try:
        error = decode_json(content, wire.ApiError)
    except UNREADABLE:  # from a proxy
        return ApiException(status, "UNKNOWN", f"the server answered with status {status}")
    return ApiException(status, error.code, error.message, error.details)


def _decode_frame(text: str | bytes) -> wire.ServerFrame:
    try:
        return decode_json(text, wire.ServerFrame)
    except UNREADABLE:
        raise UsageError("the server speaks a dialect or another version; GET /api/info tells which") from None
