"""The tasks of a node: sessions of a fleet. Any worker runs them, and any node serves them.

The node only reads the database and writes to it, so its clients may go on at another node at any time. Handlers here
replace those of a server that runs its tasks itself. A request that needs the files of a clone is refused.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from heapq import nlargest
from itertools import chain, islice
from typing import Any, NoReturn

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from handrail.api import Handrail, Parameters, Returned
from handrail.fleet.changes import find_folder, list_changes, open_folder, read_change, read_output
from handrail.fleet.feed import EventNotices
from handrail.fleet.inbox import FleetInbox
from handrail.fleet.metrics import Metrics
from handrail.fleet.options import RunOptions, SharedFolder, is_repository, name_workspace, parse_workspace
from handrail.fleet.sessions import (
    BusySessionError,
    FleetSession,
    FleetSessions,
    TenantLimitError,
)
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.decisions import Mode
from handrail.protocol.digest import sha256
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import InboxQuestion, InboxRequest, Reply
from handrail.server import wire
from handrail.server.access import METRICS
from handrail.server.approvals import (
    build_answer,
    build_late_refusal,
    build_late_reply,
    build_question,
    build_waiting,
)
from handrail.server.changes import is_about, redo, undo
from handrail.server.context import Request
from handrail.server.directory import build_title
from handrail.server.feed import TaskFeeds
from handrail.server.options import ApiFailure, ServerOptions
from handrail.server.tasks import check_mode, check_new_task
from handrail.settings import LoadedSettings
from handrail.state import OWNER, SessionJournal, SessionSummary, update_summary

_MAX_TASKS = 100_000
_MAX_SUMMARIES = 2_000


class NodeOptions(ServerOptions):
    """The options of a node. A workspace is a shared folder, or `git+URL` with any `#REVISION`."""

    def resolve_workspace(self, named: str | None = None) -> str:
        if named is not None and is_repository(named) and named.partition("#")[0] in self.workspaces:
            return named
        return super().resolve_workspace(named)

    def find_folder(self, workspace: str) -> str:
        return find_folder(workspace, self.state.path)

    def load_settings(self, workspace: str, mode: Mode | None = None) -> LoadedSettings:
        return super().load_settings(self.find_folder(workspace), mode)


class FleetTasks:
    """Its methods with a request are handlers."""

    poll_seconds = 5.0
    """The database announces events. This is for when an announcement was lost."""

    def __init__(self, options: ServerOptions, loop: asyncio.AbstractEventLoop, url: str) -> None:
        """StoreError if the database cannot be used."""
        self._options, self.loop = options, loop
        self._sessions = FleetSessions(url, pooled=True)
        self._inbox = FleetInbox(self._sessions)
        self._metrics = Metrics(url)
        self._summaries: dict[str, SessionSummary] = {}
        self.pages: Mapping[str, Callable[[], bytes]] = {METRICS: self._metrics.render}
        self.feeds = TaskFeeds(loop, self, options.dialect)
        self._notices = EventNotices(url, self._wake)
        self._notices.start()
        self.handlers: Mapping[str, Callable[..., Any]] = {
            "tasks.list_tasks": self.list_tasks,
            "tasks.create_task": self.create_task,
            "tasks.delete_task": self.delete_task,
            "tasks.prompt_task": self.prompt_task,
            "tasks.resume_task": self.resume_task,
            "tasks.cancel_task": self.cancel_task,
            "tasks.fork_task": _refuse("A session of a fleet cannot be forked."),
            "tasks.set_mode": self.set_mode,
            "events.get_output": self.get_output,
            "approvals.get_inbox": self.get_inbox,
            "approvals.get_request": self.get_request,
            "approvals.answer_request": self.answer_request,
            "approvals.retry_request": _refuse(
                "A command of a fleet cannot be previewed again. Deny it, with a reason."
            ),
            "approvals.reply_to_question": self.reply_to_question,
            "approvals.revoke_grant": _refuse("The grants of a session of a fleet end with the session."),
            "changes.list_changes": self.list_changes,
            "changes.get_change": self.get_change,
            "changes.undo_change": self.undo_change,
            "changes.redo_change": self.redo_change,
            "processes.list_processes": self.list_processes,
            "processes.get_output": _refuse("The background processes of a fleet are on its workers."),
            "processes.stop_process": _refuse("The background processes of a fleet end with each run."),
            "audit.list_records": self.list_records,
            "audit.verify": self.verify,
            "policy.try_rule": _refuse("A node of a fleet has no past calls. Use handrail policy on a worker."),
            "calls.check_call": _refuse("A node of a fleet runs no calls."),
            "calls.run_call": _refuse("A node of a fleet runs no calls."),
        }

    @staticmethod
    def check(url: str) -> None:
        """StoreError if the database cannot be used."""
        FleetSessions(url).close()

    async def close(self) -> None:
        self.feeds.close()
        await asyncio.to_thread(self._notices.close)
        self._metrics.close()
        self._sessions.close()

    def _wake(self, session: str | None) -> None:
        if session is not None:
            self.feeds.wake(session)

    # Where tasks are stored

    def describe(self, task_id: str) -> wire.Task:
        return self._describe(self._find(task_id))

    def find_workspace(self, task_id: str) -> str:
        return name_workspace(self._find(task_id).options)

    def open_journal(self, task_id: str) -> AbstractContextManager[SessionJournal]:
        return nullcontext(self._sessions.open_view(self._find(task_id).id))

    # Tasks

    def list_tasks(self, request: Request) -> wire.TaskList:
        query = request.query
        found = self._list_served(query["workspace"], text=query["text"] or "")
        if state := query["state"]:
            found = [one for one in found if _find_state(one) == state]
        page = found[query["offset"] : query["offset"] + query["limit"]]
        return wire.TaskList(tasks=tuple(map(self._describe, page)), total=len(found))

    def create_task(self, request: Request) -> wire.Task:
        """The task counts for the tenant with the name of the token."""
        body, workspace = check_new_task(request)
        loaded = request.server.options.load_settings(workspace, body.mode)
        models = request.server.options.host.list_models(loaded)
        model = body.model or next(iter(models), None)
        if model is None:
            raise ApiFailure(400, "INVALID_ARGUMENT", "The node has no model. Start it with --model NAME.")
        options = RunOptions(model=model, workspace=parse_workspace(workspace), mode=loaded.settings.mode)
        tenant = "" if request.caller.name == OWNER else request.caller.name
        if body.prompt is None:
            return self.describe(self._sessions.create(options, tenant))
        return self.describe(_submit(self._sessions.submit, body.prompt, options, tenant=tenant))

    def prompt_task(self, request: Request) -> wire.Accepted:
        """Starts a turn. While one is open, the prompt waits until the model can get it."""
        request.check_work(request.params["task"])
        found, text = self._find(request.params["task"]), request.body.text
        queued = _submit(self._sessions.queue, found.id, text)
        if not queued:
            _submit(self._sessions.submit, text, found.options, session=found.id, tenant=found.tenant)
        return wire.Accepted(task=self.describe(found.id), queued=queued)

    def resume_task(self, request: Request) -> wire.Accepted:
        request.check_work(request.params["task"])
        task = self.describe(request.params["task"])
        if task.state not in {"failed", "limit"}:
            raise ApiFailure(409, "CONFLICT", f"The task is {task.state}: no turn was interrupted.")
        self._sessions.resume(task.id)
        return wire.Accepted(task=task)

    def cancel_task(self, request: Request) -> wire.Accepted:
        task = self.describe(request.params["task"])
        if not self._sessions.cancel(task.id):
            raise ApiFailure(409, "CONFLICT", f"The task is {task.state}: there is no turn to cancel.")
        return wire.Accepted(task=task)

    def delete_task(self, request: Request) -> None:
        _submit(self._sessions.delete, self._find(request.params["task"]).id)
        self.feeds.wake(request.params["task"])

    def set_mode(self, request: Request) -> wire.Task:
        found, mode = self._find(request.params["task"]), request.body.mode
        check_mode(request, name_workspace(found.options), mode)
        _submit(self._sessions.set_mode, found, mode)
        return self.describe(found.id)

    async def get_output(self, request: Request, _http: HttpRequest) -> Response:
        def read() -> bytes:
            return read_output(self._sessions, self._find(request.params["task"]).id, request.params["call"])

        return Response(await request.server.in_thread(read), media_type="application/octet-stream")

    # Approvals

    def get_inbox(self, request: Request) -> wire.InboxList:
        named = request.query["workspace"]
        return wire.InboxList(
            requests=tuple(build_waiting(one) for one in self._inbox.list_requests() if self._is_served(one, named)),
            questions=tuple(build_question(one) for one in self._inbox.list_questions() if self._is_served(one, named)),
            grants=(),
        )

    def get_request(self, request: Request) -> wire.RequestDetail:
        """Whether files have changed since is found when a worker runs the call."""
        return wire.RequestDetail(waiting=build_waiting(self._find_request(request)), outdated=())

    def answer_request(self, request: Request) -> wire.AnswerOutcome:
        """Gives an answer. It is stored together with the job for a worker."""
        waiting = self._find_request(request)
        request_id = waiting.request.id
        request.check_work(waiting.folder)
        answer = build_answer(waiting.request, request.body)
        try:
            session = self._sessions.answer(request_id, answer)
        except UsageError:
            if self._inbox.find_request(request_id) is not None:
                raise
            raise build_late_refusal() from None
        return wire.AnswerOutcome(task=session, subject=request_id, left=self._summarize(session).waiting)

    def reply_to_question(self, request: Request) -> wire.AnswerOutcome:
        wanted: wire.NewReply = request.body
        call = request.params["question"]
        asked = next((one for one in self._inbox.list_questions() if one.question.tool_call_id == call), None)
        if asked is None or not self._is_served(asked):
            raise ApiFailure(404, "NOT_FOUND", "There is no such question. GET /api/inbox lists the questions.")
        request.check_work(asked.session_id)
        reply = Reply(chosen=wanted.chosen, text=wanted.text) if wanted.chosen or wanted.text else None
        if reply is not None:
            asked.question.normalize_reply(reply)  # UsageError says which replies are possible
        try:
            self._sessions.reply(asked.session_id, call, reply)
        except UsageError:  # another reply was faster
            raise build_late_reply() from None
        left = self._summarize(asked.session_id).waiting - 1
        return wire.AnswerOutcome(task=asked.session_id, subject=call, left=left)

    # Changes, processes

    def list_changes(self, request: Request) -> wire.ChangeList:
        """Of many clones, only those that changed last are read."""
        workspace, task, path, limit = (request.query[name] for name in ("workspace", "task", "path", "limit"))
        sessions = [one for one in self._list_served(workspace) if task in {None, one.id}]
        logs = sorted({_name_log(one) for one in sessions[:limit]})
        records = chain.from_iterable(islice(list_changes(self._sessions, log), limit) for log in logs)
        found = (one for one in records if task in {None, one.session_id} and (path is None or is_about(one, path)))
        return wire.ChangeList(changes=tuple(nlargest(limit, found, key=lambda one: one.time)))

    def get_change(self, request: Request) -> wire.ChangeDetail:
        change, diff = self._find_change(request)
        return wire.ChangeDetail(change=change, diff=diff)

    def undo_change(self, request: Request) -> wire.UndoOutcome:
        return undo(self._open_folder(request), int(request.params["number"]), request.body)

    def redo_change(self, request: Request) -> wire.UndoOutcome:
        return redo(self._open_folder(request), request.body)

    def list_processes(self, request: Request) -> wire.ProcessList:
        """None: the processes of a run end with it."""
        request.server.options.list_workspaces(request.query["workspace"])
        return wire.ProcessList(processes=())

    # Audit

    def list_records(self, request: Request) -> wire.AuditPage:
        """The last records of the sessions that changed last."""
        limit = request.query["limit"]
        sessions = self._list_served()[:limit]
        records = (record for one in sessions for record in self._sessions.list_audit(one.id, limit))
        found = nlargest(limit, records, key=lambda record: record.time)  # of a million, at most
        return wire.AuditPage(records=tuple(reversed(found)))

    def verify(self, request: Request) -> wire.AuditCheck:
        """Checks the chain of each session. The head is the digest of their heads."""
        del request
        records, heads, problems, unread = 0, sha256(), list[str](), list[str]()
        for one in sorted(self._list_served(), key=lambda one: one.id):
            checked = self._sessions.verify(one.id)
            records += checked.records
            heads.update(checked.head.encode())
            problems += (f"{one.id}: {problem}" for problem in checked.problems)
            unread += (f"{one.id}: {problem}" for problem in checked.unread)
        return wire.AuditCheck(
            intact=not problems and not unread,
            records=records,
            head=heads.hexdigest(),
            problems=tuple(problems),
            unread=tuple(unread),
        )

    # Lookup

    def _find(self, task_id: str) -> FleetSession:
        found = self._sessions.find(task_id)
        if found is None or not self._is_served(found):
            raise ApiFailure(404, "NOT_FOUND", f"There is no task {task_id[:80]!r}. GET /api/tasks lists the tasks.")
        return found

    def _is_served(self, one: FleetSession | InboxRequest | InboxQuestion, named: str | None = None) -> bool:
        """Whether it is in a workspace of this name, or in any that is served. A repository has all its revisions."""
        workspace = name_workspace(one.options) if isinstance(one, FleetSession) else one.workspace or ""
        served = self._options.list_workspaces(named)
        repository = workspace.partition("#")[0] if is_repository(workspace) else workspace
        return workspace in served or repository in served

    def _list_served(self, named: str | None = None, text: str = "") -> list[FleetSession]:
        """The sessions of one served workspace or of all, the last changed first."""
        listed = self._sessions.list_sessions(limit=_MAX_TASKS, text=text)
        return [one for one in listed if self._is_served(one, named)]

    def _find_request(self, request: Request) -> InboxRequest:
        waiting = self._inbox.find_request(request.params["request"])
        if waiting is None or not self._is_served(waiting):
            raise ApiFailure(404, "NOT_FOUND", "No such request is waiting. GET /api/inbox lists the requests.")
        return waiting

    def _find_change(self, request: Request) -> tuple[ChangeRecord, str]:
        workspace, task = self._options.resolve_workspace(request.query["workspace"]), request.query["task"]
        if not is_repository(workspace):
            log = _name_folder_log(workspace)
        elif task is not None:
            log = self._find(task).id
        else:
            raise ApiFailure(400, "INVALID_ARGUMENT", "Each clone counts its own changes: name the task.")
        found = read_change(self._sessions, log, int(request.params["number"]))
        if found is None:
            raise ApiFailure(404, "NOT_FOUND", f"There is no change {request.params['number']}.")
        return found

    def _open_folder(self, request: Request) -> AbstractContextManager[Handrail]:
        workspace = self._options.resolve_workspace(request.query["workspace"])
        if not os.path.isdir(workspace):
            raise _Refusal("Only a worker has these files. Ask the model to take the change back.")
        log, at_work = _name_folder_log(workspace), self._sessions.list_sessions("queued", "running", limit=_MAX_TASKS)
        if any(_name_log(one) == log for one in at_work):  # also under another name of the folder
            raise ApiFailure(409, "CONFLICT", "A task works in this folder. Wait until it ends, or cancel it.")
        loaded = request.server.options.load_settings(workspace)
        state = os.path.join(self._options.state.path, "node")
        return open_folder(self._sessions, workspace, f"server-{request.caller.name}", state, loaded)

    # Descriptions

    def _describe(self, found: FleetSession) -> wire.Task:
        summary, state = self._summarize(found.id), _find_state(found)
        reason = found.outcome.message if found.outcome is not None and state == "failed" else None
        return wire.Task(
            id=found.id,
            workspace=name_workspace(found.options),
            title=build_title(summary),
            state=state,
            reason=summary.limit if state == "limit" else reason or "",
            mode=found.options.mode,
            model=found.options.model,
            created=found.created,
            updated=found.changed,
            last_seq=summary.last_seq,
            waiting=summary.waiting,
            files_changed=len(summary.changed_paths),
            here=False,
        )

    def _summarize(self, session: str) -> SessionSummary:
        known, journal = self._summaries.get(session), self._sessions.open_view(session)
        if known is None or known.last_seq != journal.seq:
            known = update_summary(journal, known or SessionSummary())
            if len(self._summaries) >= _MAX_SUMMARIES:
                self._summaries.clear()
            self._summaries[session] = known
        return known


def _find_state(found: FleetSession) -> wire.TaskState:
    match found.state:
        case "queued" | "running":
            return "running"
        case "waiting":
            return "waiting"
        case "failed":
            return "limit" if found.outcome is not None and found.outcome.reason == "limit" else "failed"
        case "idle":
            if found.outcome is None:
                return "idle"
            return "cancelled" if found.outcome.reason == "cancelled" else "done"


def _name_log(found: FleetSession) -> str:
    """The change log of a session."""
    workspace = found.options.workspace
    return _name_folder_log(workspace.path) if isinstance(workspace, SharedFolder) else found.id


def _name_folder_log(path: str) -> str:
    return f"folder:{os.path.realpath(path)}"


# Refusals


class _Refusal(ApiFailure):
    """The node cannot do this, as it does not have the files of the workers."""

    def __init__(self, message: str) -> None:
        super().__init__(422, "UNAVAILABLE", f"{message} Nothing was done.")


def _refuse(message: str) -> Callable[[Request], NoReturn]:
    """A handler that only explains itself."""

    def handle(_request: Request) -> NoReturn:
        raise _Refusal(message)

    return handle


def _submit(act: Callable[Parameters, Returned], *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
    """Changes a session. ApiFailure if it is at work, or its tenant has reached a limit."""
    try:
        return act(*args, **kwargs)
    except BusySessionError as error:
        raise ApiFailure(409, "CONFLICT", f"{error}. Nothing was done.") from None
    except TenantLimitError as error:
        raise ApiFailure(429, "TOO_MANY", f"{error}. Nothing was started.") from None
