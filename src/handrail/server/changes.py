"""Change sets of a workspace: their diffs, undo, redo."""

from typing import Any

from handrail.protocol.changes import ChangeRecord
from handrail.protocol.errors import ToolError
from handrail.protocol.results import ToolResult
from handrail.server.calls import open_own_session
from handrail.server.context import Request
from handrail.server.options import ApiFailure
from handrail.server.wire import ChangeDetail, ChangeList, NewUndo, UndoOutcome

_MAX_SEARCHED = 10_000
"""Change sets that a list with a filter looks at."""


def list_changes(request: Request) -> ChangeList:
    query = request.query
    limit, task, path = query["limit"], query["task"], query["path"]
    with open_own_session(request, query["workspace"]) as rail:
        records = rail.changes(_MAX_SEARCHED if task or path else limit)
    found = [one for one in records if task in {None, one.session_id} and (path is None or _is_about(one, path))]
    return ChangeList(changes=tuple(found[:limit]))


def get_change(request: Request) -> ChangeDetail:
    number = _get_number(request)
    with open_own_session(request, request.query["workspace"]) as rail:
        diff = rail.diff(number)
        for record in rail.changes(_MAX_SEARCHED):
            if record.number == number:
                return ChangeDetail(change=record, diff=diff)
    raise ApiFailure(404, "NOT_FOUND", f"There is no change {number}.")


def undo_change(request: Request) -> UndoOutcome:
    wanted: NewUndo = request.body
    number = _get_number(request)
    with open_own_session(request, request.query["workspace"]) as rail:
        if wanted.preview:
            return UndoOutcome(diff=rail.preview_undo(number, resolve=wanted.resolve), result=None)
        return _build_outcome(rail.undo(number, resolve=wanted.resolve))


def redo_change(request: Request) -> UndoOutcome:
    wanted: NewUndo = request.body
    with open_own_session(request, request.query["workspace"]) as rail:
        if wanted.preview:
            return UndoOutcome(diff=rail.preview_redo(resolve=wanted.resolve), result=None)
        return _build_outcome(rail.redo(resolve=wanted.resolve))


def _get_number(request: Request) -> int:
    spelled = request.params["number"]
    if spelled.isascii() and spelled.isdigit() and len(spelled) < 16:
        return int(spelled)
    raise ApiFailure(404, "NOT_FOUND", "A change is named by its number. GET /api/changes lists them.")


def _build_outcome(result: ToolResult[Any]) -> UndoOutcome:
    """ToolError if it was refused. The details of a conflict name the later changes and the ways out."""
    if result.error is not None:
        raise ToolError(result.error.code, result.error.message, details=result.error.details)
    return UndoOutcome(diff=result.data.diff if result.data is not None else "", result=result)


def _is_about(record: ChangeRecord, path: str) -> bool:
    """Whether it changed this file, or a file in this folder."""
    folder = f"{path.rstrip('/')}/"
    paths = {name for change in record.changes for name in (change.path, change.renamed_from) if name}
    return any(name == path or name.startswith(folder) for name in paths)
