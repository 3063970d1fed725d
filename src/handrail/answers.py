"""Answers to requests of stored sessions, from people who did not open these sessions."""

from typing import Literal, NamedTuple

from handrail.api import Handrail
from handrail.protocol.permissions import Answer, InboxRequest, OpenedFolder, PermissionRequest
from handrail.protocol.records import StoredGrant
from handrail.settings import LoadedSettings
from handrail.state import StoredState


class AnswerObstacle(NamedTuple):
    """Why an answer would be lost or would mean something else, so that it must not be given."""

    kind: Literal["tool", "variables", "stopped", "outdated"]
    """`tool`: only the program that asked has a tool of the batch. `variables`: the command would get others.
    `stopped`: the preview was stopped, so only its output can be kept. `outdated`: files changed since the preview."""
    names: tuple[str, ...] = ()
    """The tools or the files."""


def find_obstacle(
    rail: Handrail, waiting: InboxRequest, answer: Answer, *, checks_files: bool = True
) -> AnswerObstacle | None:
    """Why this answer must not be given. None if it may."""
    if missing := _list_missing_tools(rail, waiting, answer):
        return AnswerObstacle("tool", missing)
    if answer.kind == "deny":
        return None
    if rail.would_differ(waiting.environment):
        return AnswerObstacle("variables")
    if _is_stopped(waiting.request, answer):
        return AnswerObstacle("stopped")
    if checks_files and answer.approves and (files := list_changed_files(rail, waiting.request)):
        return AnswerObstacle("outdated", files)
    return None


def list_changed_files(rail: Handrail, request: PermissionRequest) -> tuple[str, ...]:
    """The files that changed since the preview of a command."""
    return () if request.preview_id is None else rail.outdated(request)


def end_grant(state: StoredState, grant: StoredGrant, loaded: LoadedSettings, *, workspace: str) -> None:
    """Revokes a grant, or closes a folder."""
    granted = grant.granted
    with Handrail(workspace, session=granted.session_id, state_dir=state.path, settings=loaded) as rail:
        if isinstance(granted, OpenedFolder):
            rail.close_folder(granted.path)
        else:
            rail.revoke(granted.id)


def _list_missing_tools(rail: Handrail, waiting: InboxRequest, answer: Answer) -> tuple[str, ...]:
    """The tools of the batch that this session does not have: an approval would be lost. A denial does not need the
    tool of its own call."""
    here, tools = {spec.name for spec in rail.specs()}, list(waiting.tools)
    if answer.kind == "deny" and waiting.request.called in tools:
        tools.remove(waiting.request.called)
    return tuple(name for name in tools if name not in here)


def _is_stopped(request: PermissionRequest, answer: Answer) -> bool:
    """Whether the answer would commit a command that was stopped."""
    return not (answer.kind in request.answers or "once" in request.answers or "output" not in request.answers)
