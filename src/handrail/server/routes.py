"""The table of the HTTP API: every route with its role, handler, messages.

Dispatch, the check of roles and the OpenAPI document follow from it.
"""

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from handrail.server import wire
from handrail.server.wire import Role

Method = Literal["GET", "POST", "DELETE"]
_Number = Annotated[int, Meta(ge=0, le=1 << 53)]
_Term = Annotated[str, Meta(max_length=1_000, pattern=r"\A[^\0-\x1f\x7f]*\Z")]


class QueryParameter(NamedTuple):
    """A parameter of a query."""

    kind: Any
    default: Any
    summary: str


PARAMETERS: dict[str, QueryParameter] = {
    "workspace": QueryParameter(
        _Term, None, "A folder that the server serves. Absent: the default one, or all for lists."
    ),
    "state": QueryParameter(wire.TaskState, None, "Only tasks in this state."),
    "text": QueryParameter(_Term, None, "Only tasks whose title has this text."),
    "after": QueryParameter(_Number, 0, "Only what comes after this number."),
    "limit": QueryParameter(Annotated[int, Meta(ge=1, le=1_000)], 100, "How many at most."),
    "offset": QueryParameter(_Number, 0, "How many to skip."),
    "task": QueryParameter(_Term, None, "Only of this task."),
    "path": QueryParameter(_Term, None, "Only changes of this path."),
}
PATH_PARAMETERS: dict[str, Any] = {
    "task": Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")],
    "number": Annotated[int, Meta(ge=1, le=1 << 53)],
}
"""The parts of paths. All others are ids of this form."""
ID = Annotated[str, Meta(pattern=r"\A[!-.0-~]{1,200}\Z")]


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
    """Names of parameters, as `parameters` declares them."""
    status: int = 200


_IN = ("workspace",)
ROUTES: tuple[Route, ...] = (
    Route("GET", "/api/info", "viewer", "info.get_info", "Version, caller, workspaces, models.", None, wire.ServerInfo),
    # Tasks
    Route(
        "GET",
        "/api/tasks",
        "viewer",
        "tasks.list_tasks",
        "List tasks, the last used one first.",
        None,
        wire.TaskList,
        ("workspace", "state", "text", "limit", "offset"),
    ),
    Route(
        "POST",
        "/api/tasks",
        "operator",
        "tasks.create_task",
        "Create a task, with its first prompt or without.",
        wire.NewTask,
        wire.Task,
        status=201,
    ),
    Route("GET", "/api/tasks/{task}", "viewer", "tasks.get_task", "Show a task.", None, wire.Task),
    Route(
        "DELETE", "/api/tasks/{task}", "admin", "tasks.delete_task", "Remove an idle task with its journal.", status=204
    ),
    Route(
        "POST",
        "/api/tasks/{task}/prompt",
        "operator",
        "tasks.prompt_task",
        "Give the task a prompt.",
        wire.NewPrompt,
        wire.Accepted,
        status=202,
    ),
    Route(
        "POST",
        "/api/tasks/{task}/resume",
        "operator",
        "tasks.resume_task",
        "Continue an interrupted turn.",
        None,
        wire.Accepted,
        status=202,
    ),
    Route(
        "POST",
        "/api/tasks/{task}/cancel",
        "operator",
        "tasks.cancel_task",
        "Cancel the running turn.",
        None,
        wire.Accepted,
        status=202,
    ),
    Route(
        "POST",
        "/api/tasks/{task}/fork",
        "operator",
        "tasks.fork_task",
        "Start a task with a copy of the transcript.",
        wire.NewFork,
        wire.Task,
        status=201,
    ),
    Route(
        "POST",
        "/api/tasks/{task}/mode",
        "operator",
        "tasks.set_mode",
        "Change the mode of a task.",
        wire.NewMode,
        wire.Task,
    ),
    Route(
        "GET",
        "/api/tasks/{task}/events",
        "viewer",
        "events.list_events",
        "Events after a number.",
        None,
        wire.EventPage,
        ("after", "limit"),
    ),
    Route(
        "GET",
        "/api/tasks/{task}/stream",
        "viewer",
        "events.stream_events",
        "Events as server-sent events.",
        None,
        None,
        ("after",),
    ),
    Route(
        "GET",
        "/api/tasks/{task}/trace",
        "viewer",
        "trace.get_trace",
        "Where the time of each turn went.",
        None,
        wire.Traces,
    ),
    Route("GET", "/api/tasks/{task}/output/{call}", "viewer", "events.get_output", "The raw output of a command."),
    # Approvals
    Route(
        "GET",
        "/api/inbox",
        "viewer",
        "approvals.get_inbox",
        "What waits for people, and grants.",
        None,
        wire.InboxList,
        _IN,
    ),
    Route(
        "GET",
        "/api/requests/{request}",
        "viewer",
        "approvals.get_request",
        "Show a request with its preview.",
        None,
        wire.RequestDetail,
    ),
    Route(
        "POST",
        "/api/requests/{request}/answer",
        "operator",
        "approvals.answer_request",
        "Answer a request.",
        wire.NewAnswer,
        wire.AnswerOutcome,
    ),
    Route(
        "POST",
        "/api/requests/{request}/retry",
        "operator",
        "approvals.retry_request",
        "Preview the command again, or another command.",
        wire.NewCommand,
        wire.RequestDetail,
    ),
    Route(
        "POST",
        "/api/questions/{question}/reply",
        "operator",
        "approvals.reply_to_question",
        "Reply to a question.",
        wire.NewReply,
        wire.AnswerOutcome,
    ),
    Route("DELETE", "/api/grants/{grant}", "operator", "approvals.revoke_grant", "Revoke a grant.", status=204),
    # Changes
    Route(
        "GET",
        "/api/changes",
        "viewer",
        "changes.list_changes",
        "List change sets, the latest first.",
        None,
        wire.ChangeList,
        ("workspace", "task", "path", "limit"),
    ),
    Route(
        "GET",
        "/api/changes/{number}",
        "viewer",
        "changes.get_change",
        "A change set with its diff.",
        None,
        wire.ChangeDetail,
        _IN,
    ),
    Route(
        "POST",
        "/api/changes/{number}/undo",
        "operator",
        "changes.undo_change",
        "Undo a change set, or preview that.",
        wire.NewUndo,
        wire.UndoOutcome,
        _IN,
    ),
    Route(
        "POST",
        "/api/redo",
        "operator",
        "changes.redo_change",
        "Undo the last undo.",
        wire.NewUndo,
        wire.UndoOutcome,
        _IN,
    ),
    # Processes
    Route(
        "GET",
        "/api/processes",
        "viewer",
        "processes.list_processes",
        "List background processes.",
        None,
        wire.ProcessList,
        _IN,
    ),
    Route(
        "GET",
        "/api/processes/{process}/output",
        "viewer",
        "processes.get_output",
        "Output of a process.",
        None,
        wire.ProcessOutput,
        ("after",),
    ),
    Route(
        "POST",
        "/api/processes/{process}/stop",
        "operator",
        "processes.stop_process",
        "Stop a process.",
        None,
        wire.ProcessList,
    ),
    # Audit, policy, tools
    Route(
        "GET",
        "/api/audit",
        "viewer",
        "audit.list_records",
        "The last audit records, the oldest first.",
        None,
        wire.AuditPage,
        ("limit",),
    ),
    Route(
        "POST",
        "/api/audit/verify",
        "viewer",
        "audit.verify",
        "Check the hash chain against the journals.",
        None,
        wire.AuditCheck,
    ),
    Route(
        "POST",
        "/api/policy/explain",
        "viewer",
        "policy.explain",
        "Explain the decision about a call.",
        wire.PolicyQuestion,
        wire.PolicyAnswer,
    ),
    Route(
        "POST",
        "/api/policy/try-rule",
        "viewer",
        "policy.try_rule",
        "Decide past calls with one more rule.",
        wire.NewRule,
        wire.RuleEffect,
    ),
    Route("GET", "/api/tools", "viewer", "calls.list_tools", "The tools with their schemas.", None, wire.ToolList, _IN),
    Route(
        "POST",
        "/api/call/check",
        "operator",
        "calls.check_call",
        "Check a call and preview it.",
        wire.NewCall,
        wire.CallCheck,
    ),
    Route(
        "POST",
        "/api/call",
        "operator",
        "calls.run_call",
        "Run a call ([server] direct_calls).",
        wire.NewCall,
        wire.CallOutcome,
    ),
    Route(
        "GET",
        "/api/settings",
        "viewer",
        "info.get_settings",
        "Every setting, and where it comes from.",
        None,
        dict[str, Any],
        _IN,
    ),
    Route(
        "GET",
        "/api/schema",
        "viewer",
        "info.get_schema",
        "JSON Schema of everything on the wire.",
        None,
        dict[str, Any],
    ),
    Route(
        "GET", "/api/openapi.json", "viewer", "openapi.get_document", "This API as OpenAPI 3.1.", None, dict[str, Any]
    ),
)
"""Beside these, without a role: `POST /api/login` (a token for the cookie), `POST /api/logout`, `GET /healthz`, and the
files of the console. `/ws/{task}` needs the role viewer; its frames need operator. `/mcp` needs operator."""
SOCKET_HANDLER = "websocket.serve_task"
"""The handler of `/ws/{task}`: a coroutine of the server, the caller and the WebSocket of Starlette."""
