"""The table of the HTTP API: every route with its role, handler, messages.

Dispatch, the check of roles and the OpenAPI document follow from it.
"""

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from handrail.server import wire
from handrail.server.wire import Role

Method = Literal["GET", "POST", "DELETE"]
_Number = Annotated[int, Meta(ge=0, le=1 << 53)]
_Term = Annotated[str, Meta(max_length=1_000, pattern=r"^[^\0-\x1f\x7f]*$")]


class QueryParameter(NamedTuple):
    kind: Any
    default: Any
    summary: str


# fmt: off
PARAMETERS: dict[str, QueryParameter] = {
    "workspace": QueryParameter(_Term, None, "A folder that the server serves. Absent: the default, or all for lists."),
    "state": QueryParameter(wire.TaskState, None, "Only tasks in this state."),
    "text": QueryParameter(_Term, None, "Only tasks whose title has this text."),
    "after": QueryParameter(_Number, 0, "Only what comes after this number."),
    "limit": QueryParameter(Annotated[int, Meta(ge=1, le=1_000)], 100, "How many at most."),
    "offset": QueryParameter(_Number, 0, "How many to skip."),
    "task": QueryParameter(_Term, None, "Only of this task."),
    "path": QueryParameter(_Term, None, "Only changes of this path."),
}
# fmt: on
PATH_PARAMETERS: dict[str, Any] = {
    "task": Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")],
    "number": Annotated[int, Meta(ge=1, le=1 << 53)],
}
"""The parts of paths. All others are ids of this form."""
ID = Annotated[str, Meta(pattern="^[!-.0-~]{1,200}$")]


class Route(NamedTuple):
    method: Method
    path: str
    role: Role
    handler: str
    """`module.function` in `handrail.server`; a module is imported when it is first needed."""
    summary: str
    body: Any = None
    answer: Any = None
    """None: the answer has no body, or is not JSON."""
    query: tuple[str, ...] = ()
    """Names of `PARAMETERS`."""
    status: int = 200


def _read(path: str, handler: str, summary: str, answer: Any, *query: str) -> Route:
    return Route("GET", path, "viewer", handler, summary, None, answer, query)


def _post(path: str, handler: str, summary: str, body: Any, answer: Any, *query: str, status: int = 200) -> Route:
    return Route("POST", path, "operator", handler, summary, body, answer, query, status)


def _ask(path: str, handler: str, summary: str, body: Any, answer: Any) -> Route:
    """A question with a body. It changes nothing."""
    return Route("POST", path, "viewer", handler, summary, body, answer)


def _remove(path: str, role: Role, handler: str, summary: str) -> Route:
    return Route("DELETE", path, role, handler, summary, status=204)


# fmt: off
ROUTES: tuple[Route, ...] = (
    _read("/api/info", "info.get_info", "Version, caller, workspaces, models.", wire.ServerInfo),

    _read("/api/tasks", "tasks.list_tasks", "List tasks, the last used one first.", wire.TaskList,
          "workspace", "state", "text", "limit", "offset"),
    _post("/api/tasks", "tasks.create_task", "Create a task, with its first prompt or without.",
          wire.NewTask, wire.Task, status=201),
    _read("/api/tasks/{task}", "tasks.get_task", "Show a task.", wire.Task),
    _remove("/api/tasks/{task}", "admin", "tasks.delete_task", "Remove an idle task with its journal."),
    _post("/api/tasks/{task}/prompt", "tasks.prompt_task", "Give the task a prompt.",
          wire.NewPrompt, wire.Accepted, status=202),
    _post("/api/tasks/{task}/resume", "tasks.resume_task", "Continue an interrupted turn.",
          None, wire.Accepted, status=202),
    _post("/api/tasks/{task}/cancel", "tasks.cancel_task", "Cancel the running turn.",
          None, wire.Accepted, status=202),
    _post("/api/tasks/{task}/fork", "tasks.fork_task", "Start a task with a copy of the transcript.",
          wire.NewFork, wire.Task, status=201),
    _post("/api/tasks/{task}/mode", "tasks.set_mode", "Change the mode of a task.", wire.NewMode, wire.Task),
    _read("/api/tasks/{task}/events", "events.list_events", "Events after a number.", wire.EventPage,
          "after", "limit"),
    _read("/api/tasks/{task}/stream", "events.stream_events", "Events as server-sent events.", None, "after"),
    _read("/api/tasks/{task}/trace", "trace.get_trace", "Show how long the parts of each turn took.", wire.Traces),
    _read("/api/tasks/{task}/output/{call}", "events.get_output", "The raw output of a command.", None),

    _read("/api/inbox", "approvals.get_inbox", "What waits for people, and grants.", wire.InboxList, "workspace"),
    _read("/api/requests/{request}", "approvals.get_request", "Show a request with its preview.", wire.RequestDetail),
    _post("/api/requests/{request}/answer", "approvals.answer_request", "Answer a request.",
          wire.NewAnswer, wire.AnswerOutcome),
    _post("/api/requests/{request}/retry", "approvals.retry_request",
          "Preview the command again, or another command.", wire.NewCommand, wire.RequestDetail),
    _post("/api/questions/{question}/reply", "approvals.reply_to_question", "Reply to a question.",
          wire.NewReply, wire.AnswerOutcome),
    _remove("/api/grants/{grant}", "operator", "approvals.revoke_grant", "Revoke a grant."),

    _read("/api/changes", "changes.list_changes", "List change sets, the latest first.", wire.ChangeList,
          "workspace", "task", "path", "limit"),
    _read("/api/changes/{number}", "changes.get_change", "A change set with its diff.", wire.ChangeDetail,
          "workspace", "task"),
    _post("/api/changes/{number}/undo", "changes.undo_change", "Undo a change set, or preview that.",
          wire.NewUndo, wire.UndoOutcome, "workspace"),
    _post("/api/redo", "changes.redo_change", "Undo the last undo.", wire.NewUndo, wire.UndoOutcome, "workspace"),

    _read("/api/processes", "processes.list_processes", "List background processes.", wire.ProcessList, "workspace"),
    _read("/api/processes/{process}/output", "processes.get_output", "Output of a process.", wire.ProcessOutput,
          "after"),
    _post("/api/processes/{process}/stop", "processes.stop_process", "Stop a process.", None, wire.ProcessList),

    _read("/api/audit", "audit.list_records", "The last audit records, the oldest first.", wire.AuditPage, "limit"),
    _ask("/api/audit/verify", "audit.verify", "Check the hash chain against the journals.", None, wire.AuditCheck),
    _ask("/api/policy/explain", "policy.explain", "Explain the decision about a call.",
         wire.PolicyQuestion, wire.PolicyAnswer),
    _ask("/api/policy/try-rule", "policy.try_rule", "Decide past calls with one more rule.",
         wire.NewRule, wire.RuleEffect),
    _read("/api/tools", "calls.list_tools", "The tools with their schemas.", wire.ToolList, "workspace"),
    _post("/api/call/check", "calls.check_call", "Check a call and preview it.", wire.NewCall, wire.CallCheck),
    _post("/api/call", "calls.run_call", "Run a call ([server] direct_calls).", wire.NewCall, wire.CallOutcome),
    _read("/api/settings", "info.get_settings", "Every setting, and where it comes from.", dict[str, Any],
          "workspace"),
    _read("/api/schema", "info.get_schema", "JSON Schema of everything on the wire.", dict[str, Any]),
    _read("/api/openapi.json", "info.get_document", "This API as OpenAPI 3.1.", dict[str, Any]),
)
# fmt: on
"""Beside these, without a role: `POST /api/login` (a token for the cookie), `POST /api/logout`, `GET /healthz`, and the
files of the console. `/ws/{task}` needs the role viewer; its frames need operator. `/mcp` needs operator."""
SOCKET_HANDLER = "websocket.serve_task"
"""The handler of `/ws/{task}`: a coroutine of the server, the caller and the WebSocket of Starlette."""
