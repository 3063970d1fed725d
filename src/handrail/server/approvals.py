"""The inbox: what waits for people in all sessions of the served workspaces."""

from functools import lru_cache

from msgspec.structs import replace

from handrail.answers import AnswerObstacle, end_grant, find_obstacle, list_changed_files
from handrail.protocol.errors import UsageError
from handrail.protocol.events import (
    Event,
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
    ToolCallQuestionRequired,
    ToolCallRunning,
)
from handrail.protocol.permissions import (
    Answer,
    InboxQuestion,
    InboxRequest,
    PermissionRequest,
    Reply,
    StandingGrant,
)
from handrail.protocol.records import StoredGrant
from handrail.protocol.wire import Json
from handrail.server import wire
from handrail.server.context import Request, ServerContext
from handrail.server.options import ApiFailure
from handrail.state import Inbox, StoredState, open_journal
from handrail.terminal.changes_text import describe_outdated


def get_inbox(request: Request) -> wire.InboxList:
    inboxes = _list_inboxes(request.server, request.query["workspace"])
    return wire.InboxList(
        requests=tuple(build_waiting(one) for inbox in inboxes for one in inbox.list_requests()),
        questions=tuple(build_question(one) for inbox in inboxes for one in inbox.list_questions()),
        grants=tuple(_build_grant(one) for inbox in inboxes for one in inbox.list_grants()),
    )


def get_request(request: Request) -> wire.RequestDetail:
    waiting = _find_request(request.server, request.params["request"])
    if waiting.request.preview_id is None:
        return wire.RequestDetail(waiting=build_waiting(waiting), outdated=())
    with request.server.runner.rail(waiting.request.session_id) as rail:
        outdated = list_changed_files(rail, waiting.request)
    return wire.RequestDetail(waiting=build_waiting(waiting), outdated=outdated)


def retry_request(request: Request) -> wire.RequestDetail:
    """Previews the command again, or another command. The request then has a new revision."""
    wanted: wire.NewCommand = request.body
    waiting = _find_request(request.server, request.params["request"])
    request.check_work(waiting.request.session_id)
    if waiting.request.command is None:
        raise _refuse("Only a command can be previewed again. Nothing was run.")
    with request.server.runner.rail(waiting.request.session_id) as rail:
        if rail.would_differ(waiting.environment):
            raise _build_refusal(AnswerObstacle("variables"))
        fresh = rail.retry(waiting.request.id, wanted.command)
    return wire.RequestDetail(waiting=build_waiting(replace(waiting, request=fresh)), outdated=())


def revoke_grant(request: Request) -> None:
    """Revokes a grant, or closes a folder that a person opened."""
    options = request.server.options
    for workspace in options.workspaces:
        for grant in _keep_inbox(options.state, workspace).list_grants():
            if grant.id == request.params["grant"]:
                return end_grant(options.state, grant, options.load_settings(workspace), workspace=workspace)
    raise ApiFailure(404, "NOT_FOUND", "There is no such grant. GET /api/inbox lists the grants.")


# Answers


def answer_request(request: Request) -> wire.AnswerOutcome:
    """Gives an answer. Returns once it is stored. After the last answer of a batch, its calls run and the task goes on.

    ApiFailure if it is for another revision, was given before, or would be lost.
    """
    server, request_id = request.server, request.params["request"]
    wanted: wire.NewAnswer = request.body
    waiting = _find_request(server, request_id)
    asked, task = waiting.request, waiting.request.session_id
    request.check_work(task)
    if waiting.answer is not None and waiting.answer.kind != wanted.kind:
        raise build_late_refusal(waiting.answer)
    answer = build_answer(asked, wanted)
    with server.runner.rail(task) as rail:
        if obstacle := find_obstacle(rail, waiting, answer, checks_files=waiting.answer is None):
            raise _build_refusal(obstacle)
        try:
            left = server.runner.settle(
                task, lambda rail: rail.answer(request_id, answer), lambda event: _is_answer(event, waiting, answer)
            )
        except UsageError:
            if rail.is_pending(request_id):
                raise
            raise build_late_refusal() from None
    return wire.AnswerOutcome(task=task, subject=request_id, left=left)


def build_answer(asked: PermissionRequest, wanted: wire.NewAnswer) -> Answer:
    """ApiFailure if it is an approval of another revision, or of an unknown one."""
    if wanted.kind != "deny" and wanted.revision is None:
        raise ApiFailure(400, "INVALID_ARGUMENT", "An approval names the revision that you saw. Nothing was answered.")
    if wanted.kind != "deny" and wanted.revision != asked.revision:
        message = f"The request is now at revision {asked.revision}. Look at it again. Nothing was answered."
        raise _refuse(message, {"revision": asked.revision})
    return Answer(kind=wanted.kind, reason=wanted.reason or None, revision=wanted.revision, grants=wanted.grants)


def _is_answer(event: Event, waiting: InboxRequest, answer: Answer) -> bool:
    """Whether an answer counts since this event. That of a request that only waits to run is stored already."""
    if waiting.answer is not None:
        return isinstance(event, ToolCallRunning)
    is_answer = isinstance(event, ToolCallPermissionGranted | ToolCallPermissionDenied)
    return is_answer and event.permission_request.id == waiting.request.id and event.answer.kind == answer.kind


def reply_to_question(request: Request) -> wire.AnswerOutcome:
    """Gives a question its reply. Without options and words, the question is put aside."""
    server, question_id = request.server, request.params["question"]
    wanted: wire.NewReply = request.body
    asked = _find_question(server, question_id)
    question, task = asked.question, asked.session_id
    request.check_work(task)
    reply = Reply(chosen=wanted.chosen, text=wanted.text) if wanted.chosen or wanted.text else None
    if reply is not None:
        question.normalize_reply(reply)  # UsageError says which replies are possible
    try:
        left = server.runner.settle(task, lambda rail: rail.reply(question, reply))
    except UsageError:  # another reply was faster
        raise build_late_reply() from None
    return wire.AnswerOutcome(task=task, subject=question_id, left=left)


# Lookup


def _list_inboxes(server: ServerContext, workspace: str | None = None) -> list[Inbox]:
    return [_keep_inbox(server.options.state, one) for one in server.options.list_workspaces(workspace)]


@lru_cache(maxsize=64)
def _keep_inbox(state: StoredState, workspace: str) -> Inbox:
    """An inbox reads only journals that have changed since it was asked last."""
    return state.open_inbox(workspace)


def _find_request(server: ServerContext, request_id: str) -> InboxRequest:
    for inbox in _list_inboxes(server):
        for waiting in inbox.list_requests():
            if waiting.request.id == request_id:
                return waiting
        if (answer := inbox.list_answers().get(request_id)) is not None:
            raise build_late_refusal(answer)
    raise ApiFailure(404, "NOT_FOUND", "There is no such request. GET /api/inbox lists the requests.")


def _find_question(server: ServerContext, question_id: str) -> InboxQuestion:
    for inbox in _list_inboxes(server):
        for asked in inbox.list_questions():
            if asked.question.tool_call_id == question_id:
                return asked
    for workspace in server.options.workspaces:
        for folder in server.options.state.sessions(workspace):
            with open_journal(folder) as journal:
                entry = journal.entry(question_id)
                if entry is not None and isinstance(journal.event(entry.start_seq + 1), ToolCallQuestionRequired):
                    raise build_late_reply()
    raise ApiFailure(404, "NOT_FOUND", "There is no such question. GET /api/inbox lists the questions.")


def build_waiting(one: InboxRequest) -> wire.WaitingRequest:
    return wire.WaitingRequest(
        request=one.request,
        task=one.request.session_id,
        workspace=one.workspace or "",
        time=one.time,
        mode=one.mode,
        state=one.state,
    )


def _build_grant(one: StoredGrant) -> wire.GrantEntry:
    grant, folder = (one.granted, None) if isinstance(one.granted, StandingGrant) else (None, one.granted)
    return wire.GrantEntry(id=one.id, grant=grant, folder=folder, workspace=one.workspace)


def build_question(one: InboxQuestion) -> wire.WaitingQuestion:
    return wire.WaitingQuestion(
        question=one.question, task=one.session_id, workspace=one.workspace or "", time=one.time
    )


# Refusals


def _refuse(message: str, details: Json = None) -> ApiFailure:
    return ApiFailure(409, "CONFLICT", message, details)


def build_late_refusal(answer: Answer | None = None) -> ApiFailure:
    kind = f": {answer.kind}" if answer is not None else ""
    return _refuse(
        f"The request has an answer already{kind}. Yours does not count.", answer and {"answer": answer.kind}
    )


def build_late_reply() -> ApiFailure:
    return _refuse("The question has a reply already. Yours does not count.")


def _build_refusal(obstacle: AnswerObstacle) -> ApiFailure:
    """Why an answer was not given. The request stays pending."""
    names = list(obstacle.names)
    match obstacle.kind:
        case "tool":
            text = f"Only the program that made the request has the tool {names[0]!r}. Nothing was answered."
        case "variables":
            text = "The command would now get other variables (PATH, language, toolchains). Nothing was approved."
        case "stopped":
            text = "The command was stopped early, so only its output can be kept. Nothing was kept."
        case "outdated":
            text = f"{describe_outdated(obstacle.names, 'Nothing was kept')} Preview the command again."
    return _refuse(text, {"files" if obstacle.kind == "outdated" else "tools": names} if names else None)
