"""A typed client of the HTTP API of `handrail serve`.

client = Client("http://127.0.0.1:7420", token)
for event in client.follow(client.create_task("Why does the test fail?").id):
    print(event)
"""

import ssl
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from handrail.protocol.decisions import Mode
from handrail.protocol.errors import HandrailError, UsageError, build_install_command
from handrail.protocol.events import AnyEvent
from handrail.protocol.permissions import AnswerKind, PermissionRequest
from handrail.protocol.wire import UNREADABLE, Json, Wire, decode_json, encode
from handrail.server import wire

_Answer = TypeVar("_Answer")
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

    # Tasks

    def info(self) -> wire.ServerInfo:
        return self._get("/api/info", wire.ServerInfo)

    def list_tasks(self, **query: Any) -> wire.TaskList:
        """`workspace`, `state`, `text`, `limit` and `offset` choose."""
        return self._get("/api/tasks", wire.TaskList, query)

    def create_task(self, prompt: str | None = None, **options: Any) -> wire.Task:
        """`workspace`, `mode` and `model` are optional. Without a prompt, the task waits for one."""
        return self._post("/api/tasks", wire.NewTask(prompt=prompt, **options), wire.Task)

    def get_task(self, task: str) -> wire.Task:
        return self._get(f"/api/tasks/{quote(task)}", wire.Task)

    def delete_task(self, task: str) -> None:
        self._send("DELETE", f"/api/tasks/{quote(task)}")

    def prompt(self, task: str, text: str) -> wire.Accepted:
        return self._post(f"/api/tasks/{quote(task)}/prompt", wire.NewPrompt(text=text), wire.Accepted)

    def resume(self, task: str) -> wire.Accepted:
        return self._post(f"/api/tasks/{quote(task)}/resume", None, wire.Accepted)

    def cancel(self, task: str) -> wire.Accepted:
        return self._post(f"/api/tasks/{quote(task)}/cancel", None, wire.Accepted)

    def fork(self, task: str, before: int | None = None) -> wire.Task:
        return self._post(f"/api/tasks/{quote(task)}/fork", wire.NewFork(before=before), wire.Task)

    def set_mode(self, task: str, mode: Mode) -> wire.Task:
        return self._post(f"/api/tasks/{quote(task)}/mode", wire.NewMode(mode=mode), wire.Task)

    def list_events(self, task: str, after: int = 0, limit: int = 100) -> wire.EventPage:
        return self._get(f"/api/tasks/{quote(task)}/events", wire.EventPage, {"after": after, "limit": limit})

    def get_trace(self, task: str) -> wire.Traces:
        return self._get(f"/api/tasks/{quote(task)}/trace", wire.Traces)

    def get_raw_output(self, task: str, call: str) -> bytes:
        return self._send("GET", f"/api/tasks/{quote(task)}/output/{quote(call)}")

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

    # Approvals

    def get_inbox(self, workspace: str | None = None) -> wire.InboxList:
        return self._get("/api/inbox", wire.InboxList, {"workspace": workspace})

    def get_request(self, request: str) -> wire.RequestDetail:
        return self._get(f"/api/requests/{quote(request)}", wire.RequestDetail)

    def answer(self, request: PermissionRequest, kind: AnswerKind, **more: Any) -> wire.AnswerOutcome:
        """Answers the revision that the request shows. `reason` is for a denial, `grants` for a scope."""
        body = wire.NewAnswer(kind=kind, revision=request.revision, **more)
        return self._post(f"/api/requests/{quote(request.id)}/answer", body, wire.AnswerOutcome)

    def retry(self, request: str, command: str | None = None) -> wire.RequestDetail:
        body = wire.NewCommand(command=command)
        return self._post(f"/api/requests/{quote(request)}/retry", body, wire.RequestDetail)

    def reply(self, question: str, *chosen: str, text: str | None = None) -> wire.AnswerOutcome:
        """Replies to a question. Without options and text, puts it aside."""
        body = wire.NewReply(chosen=chosen, text=text)
        return self._post(f"/api/questions/{quote(question)}/reply", body, wire.AnswerOutcome)

    def revoke(self, grant: str) -> None:
        self._send("DELETE", f"/api/grants/{quote(grant)}")

    # Changes, processes

    def list_changes(self, **query: Any) -> wire.ChangeList:
        """`workspace`, `task`, `path` and `limit` choose."""
        return self._get("/api/changes", wire.ChangeList, query)

    def get_change(self, number: int, workspace: str | None = None, task: str | None = None) -> wire.ChangeDetail:
        """`task` names the clone of a fleet that counts the change."""
        return self._get(f"/api/changes/{number}", wire.ChangeDetail, {"workspace": workspace, "task": task})

    def undo(self, number: int, workspace: str | None = None, **how: Any) -> wire.UndoOutcome:
        """`preview=True` only tells its effect. `resolve` is `later` or `lines`, as `Handrail.undo` explains."""
        path = f"/api/changes/{number}/undo"
        return self._post(path, wire.NewUndo(**how), wire.UndoOutcome, workspace)

    def redo(self, workspace: str | None = None, **how: Any) -> wire.UndoOutcome:
        return self._post("/api/redo", wire.NewUndo(**how), wire.UndoOutcome, workspace)

    def list_processes(self, workspace: str | None = None) -> wire.ProcessList:
        return self._get("/api/processes", wire.ProcessList, {"workspace": workspace})

    def get_process_output(self, process: str, after: int = 0) -> wire.ProcessOutput:
        return self._get(f"/api/processes/{quote(process)}/output", wire.ProcessOutput, {"after": after})

    def stop_process(self, process: str) -> wire.ProcessList:
        return self._post(f"/api/processes/{quote(process)}/stop", None, wire.ProcessList)

    # Audit, policy, tools

    def list_audit(self, limit: int = 100) -> wire.AuditPage:
        return self._get("/api/audit", wire.AuditPage, {"limit": limit})

    def verify_audit(self) -> wire.AuditCheck:
        return self._post("/api/audit/verify", None, wire.AuditCheck)

    def explain(self, question: wire.PolicyQuestion) -> wire.PolicyAnswer:
        return self._post("/api/policy/explain", question, wire.PolicyAnswer)

    def try_rule(self, rule: wire.NewRule) -> wire.RuleEffect:
        return self._post("/api/policy/try-rule", rule, wire.RuleEffect)

    def list_tools(self, workspace: str | None = None) -> wire.ToolList:
        return self._get("/api/tools", wire.ToolList, {"workspace": workspace})

    def check_call(self, call: wire.NewCall) -> wire.CallCheck:
        return self._post("/api/call/check", call, wire.CallCheck)

    def call(self, call: wire.NewCall) -> wire.CallOutcome:
        return self._post("/api/call", call, wire.CallOutcome)

    # The wire

    def _get(self, path: str, kind: type[_Answer], query: Mapping[str, Any] | None = None) -> _Answer:
        return decode_json(self._send("GET", path, query), kind)

    def _post(self, path: str, body: Wire | None, kind: type[_Answer], workspace: str | None = None) -> _Answer:
        return decode_json(self._send("POST", path, {"workspace": workspace}, body), kind)

    def _send(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Wire | None = None) -> bytes:
        """The body of the response."""
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
