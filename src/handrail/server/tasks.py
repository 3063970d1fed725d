"""The handlers of tasks: list, create, prompt, resume, cancel, fork, delete."""

from handrail.server.context import Request, list_modes
from handrail.server.directory import build_task, find_state, get_last_use
from handrail.server.options import ApiFailure
from handrail.server.wire import Accepted, NewFork, NewMode, NewPrompt, NewTask, Task, TaskList


def list_tasks(request: Request) -> TaskList:
    query, runner = request.query, request.server.runner
    workspace = query["workspace"]
    found = runner.directory.list_tasks(request.server.options.resolve_workspace(workspace) if workspace else None)
    rows = [(folder, summary, runner.find_live(folder.id)) for folder, summary in found]
    if state := query["state"]:
        rows = [row for row in rows if find_state(*row) == state]
    if text := (query["text"] or "").casefold():
        rows = [row for row in rows if text in row[1].prompt.casefold() or text in row[0].id.casefold()]
    rows.sort(key=lambda row: get_last_use(row[1]), reverse=True)
    page = rows[query["offset"] : query["offset"] + query["limit"]]
    return TaskList(tasks=tuple(build_task(*row) for row in page), total=len(rows))


def create_task(request: Request) -> Task:
    body, workspace = check_new_task(request)
    return request.server.runner.create(workspace, body.mode, body.model, body.prompt)


def check_new_task(request: Request) -> tuple[NewTask, str]:
    """The new task with its workspace. ApiFailure if there is none, or the caller may not choose its mode or model."""
    body: NewTask = request.body
    workspace = request.server.options.resolve_workspace(body.workspace)
    loaded = request.server.options.load_settings(workspace)
    if body.mode is not None:
        check_mode(request, workspace, body.mode)
    if body.model is not None and body.model not in request.server.options.host.list_models(loaded):
        raise ApiFailure(400, "INVALID_ARGUMENT", f"There is no model {body.model!r}. GET /api/info lists the models.")
    return body, workspace


def get_task(request: Request) -> Task:
    return request.server.tasks.describe(request.params["task"])


def delete_task(request: Request) -> None:
    request.server.runner.delete(request.params["task"])


def prompt_task(request: Request) -> Accepted:
    body: NewPrompt = request.body
    request.check_work(request.params["task"])
    queued = request.server.runner.prompt(request.params["task"], body.text)
    return Accepted(task=get_task(request), queued=queued)


def resume_task(request: Request) -> Accepted:
    request.check_work(request.params["task"])
    request.server.runner.resume(request.params["task"])
    return Accepted(task=get_task(request))


def cancel_task(request: Request) -> Accepted:
    request.server.runner.cancel(request.params["task"])
    return Accepted(task=get_task(request))


def fork_task(request: Request) -> Task:
    body: NewFork = request.body
    request.check_work(request.params["task"])  # the fork has the mode of the task
    return request.server.runner.fork(request.params["task"], body.before)


def set_mode(request: Request) -> Task:
    body: NewMode = request.body
    runner, task_id = request.server.runner, request.params["task"]
    check_mode(request, runner.find_workspace(task_id), body.mode)
    runner.set_mode(task_id, body.mode)
    return runner.describe(task_id)


def check_mode(request: Request, workspace: str, mode: str) -> None:
    """ApiFailure if the caller may not choose a mode."""
    if mode not in (modes := list_modes(request.caller, request.server.options.load_settings(workspace))):
        raise ApiFailure(403, "FORBIDDEN", f"You may choose the modes {', '.join(modes)}, not {mode}.")
