"""The directory of tasks: which sessions are tasks, where they are stored, how they stand."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from handrail.protocol.errors import UsageError
from handrail.protocol.events import End, Error, User
from handrail.protocol.records import check_session_id
from handrail.protocol.text import to_one_line, truncate
from handrail.server.open_task import OpenTask
from handrail.server.options import ApiFailure, ServerOptions, TaskFolder
from handrail.server.wire import Task, TaskState
from handrail.state import SessionSummaries, SessionSummary, has_lease

_MAX_TITLE_CHARS = 100
_BEGINNING = datetime.fromtimestamp(0, UTC)


class TaskDirectory:
    """Finds and describes the tasks of the served workspaces. Thread-safe."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._summaries = SessionSummaries()

    def find(self, task_id: str) -> TaskFolder:
        """ApiFailure if no served workspace has a session of this id."""
        try:
            check_session_id(task_id)
        except UsageError:
            raise _build_unknown(task_id) from None
        for workspace in self._options.workspaces:
            path = os.path.join(self._options.state.home(workspace), task_id)
            if os.path.lexists(os.path.join(path, "journal.db")):
                return TaskFolder(task_id, workspace, path)
        raise _build_unknown(task_id)

    def summarize(self, folder: TaskFolder) -> SessionSummary:
        return self._summaries.read(folder.path)

    def list_tasks(self, workspace: str | None) -> Iterator[tuple[TaskFolder, SessionSummary]]:
        """The tasks of a served workspace or of all, in no order."""
        for served in self._options.workspaces if workspace is None else (workspace,):
            for path in self._options.state.sessions(served):
                folder = TaskFolder(os.path.basename(path), served, path)
                summary = self.summarize(folder)
                if summary.is_task or summary.problem:
                    yield folder, summary

    def describe(self, folder: TaskFolder, live: OpenTask | None = None) -> Task:
        return build_task(folder, self.summarize(folder), live)


def build_task(folder: TaskFolder, summary: SessionSummary, live: OpenTask | None) -> Task:
    state = find_state(folder, summary, live)
    return Task(
        id=folder.id,
        workspace=folder.workspace,
        title=build_title(summary),
        state=state,
        reason=_find_reason(state, summary, live),
        mode=summary.mode,
        model=live.model_name if live is not None and live.model_name else summary.model,
        created=summary.created,
        updated=summary.updated,
        last_seq=summary.last_seq,
        waiting=summary.waiting,
        files_changed=len(summary.changed_paths),
        here=live is not None,
    )


def build_title(summary: SessionSummary) -> str:
    return truncate(to_one_line(summary.prompt.strip().partition("\n")[0]), _MAX_TITLE_CHARS)


def get_last_use(summary: SessionSummary) -> datetime:
    """For sorting."""
    return summary.updated or _BEGINNING


def find_state(folder: TaskFolder, summary: SessionSummary, live: OpenTask | None) -> TaskState:
    if summary.problem:
        return "unreadable"
    if summary.waiting:
        return "waiting"
    if (live is not None and live.is_running) or has_lease(folder.path):
        return "running"
    if live is not None and live.failure:
        return "failed"
    return "interrupted" if summary.has_prompts else _find_end(summary)


def _find_end(summary: SessionSummary) -> TaskState:
    match summary.last_turn_event:
        case End(reason="done" | "cancelled" | "limit" as reason):
            return reason
        case User() | End():  # no end, or it waited for answers that it has by now
            return "interrupted"
        case Error():
            return "failed"
        case None:
            return "idle"


def _find_reason(state: TaskState, summary: SessionSummary, live: OpenTask | None) -> str:
    if state == "unreadable":
        return summary.problem
    if state == "limit":
        return summary.limit
    if state != "failed":
        return ""
    if live is not None and live.failure:
        return live.failure
    return summary.last_turn_event.message if isinstance(summary.last_turn_event, Error) else ""


def _build_unknown(task_id: str) -> ApiFailure:
    return ApiFailure(404, "NOT_FOUND", f"There is no task {task_id[:80]!r}. GET /api/tasks lists the tasks.")
