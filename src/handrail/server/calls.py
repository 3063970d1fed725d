"""Calls that a person makes without a model, in a session of their own or in a task."""

from contextlib import AbstractContextManager
from typing import cast

from handrail.api import Handrail
from handrail.inspection import list_tool_specs
from handrail.protocol.errors import Problem, ToolError
from handrail.protocol.schema import describe
from handrail.protocol.tool_spec import MCP_PREFIX
from handrail.protocol.wire import Json
from handrail.server.context import Request
from handrail.server.options import ApiFailure
from handrail.server.wire import CallCheck, CallOutcome, NewCall, ToolList


def list_tools(request: Request) -> ToolList:
    """The tools of handrail and of the project. No server is started for the list."""
    loaded = request.server.options.load_settings(request.server.options.resolve_workspace(request.query["workspace"]))
    return ToolList(tools=tuple(map(describe, list_tool_specs(loaded.settings, loaded.tool_files))))


def check_call(request: Request) -> CallCheck:
    """The decision about a call and its preview, or its problems. The call is not made, and nothing of it stays."""
    wanted: NewCall = request.body
    try:
        with _open_session(request, wanted) as rail:
            decision, asked = rail.check_call(wanted.name, wanted.args)
    except ToolError as error:
        return CallCheck(problems=_list_problems(error))
    return CallCheck(problems=(), decision=decision, request=asked)


def run_call(request: Request) -> CallOutcome:
    wanted: NewCall = request.body
    if not request.server.options.direct_calls:
        raise ApiFailure(403, "FORBIDDEN", "The operator did not allow calls without a model: [server] direct_calls.")
    with _open_session(request, wanted) as rail:
        return CallOutcome(task=rail.session_id, result=rail.call(wanted.name, wanted.args))


def open_own_session(request: Request, named: str | None, *, foreign: bool = False) -> AbstractContextManager[Handrail]:
    """The session of the caller in a workspace, for work that belongs to no task. `foreign`: with tools of servers."""
    options = request.server.options
    workspace = options.resolve_workspace(named)
    loaded = options.load_settings(workspace)
    rail = Handrail(
        workspace,
        session=f"server-{request.caller.name}",
        state_dir=options.state.path,
        settings=loaded,
        on_permission="park",
        sources=options.host.open_sources(loaded, workspace) if foreign else (),
    )
    return request.server.runner.end_early(rail)


def _open_session(request: Request, wanted: NewCall) -> AbstractContextManager[Handrail]:
    """The task that a call names, else the session of the caller."""
    if wanted.task is not None:
        request.check_work(wanted.task)
        return request.server.runner.rail(wanted.task)
    return open_own_session(request, wanted.workspace, foreign=wanted.name.startswith(MCP_PREFIX))


def _list_problems(error: ToolError) -> tuple[Json, ...]:
    """The problems that INVALID_ARGUMENT lists, or the one that another error is."""
    details: Json = error.details
    if error.code == "INVALID_ARGUMENT" and isinstance(details, list | tuple) and details:
        return tuple(cast("list[Json]", details))
    return (Problem(field="", problem=error.message),)
