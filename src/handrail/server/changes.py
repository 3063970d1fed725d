"""Change sets of a workspace: their diffs, undo, redo."""

from contextlib import AbstractContextManager, closing
from itertools import islice
from typing import Any

from handrail import change_records
from handrail.api import Handrail
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.errors import ToolError
from handrail.protocol.results import ToolResult
from handrail.server.calls import open_own_session
from handrail.server.context import Request
from handrail.server.wire import ChangeDetail, ChangeList, NewUndo, UndoOutcome


def list_changes(request: Request) -> ChangeList:
    query, server = request.query, request.server
    task, path = query["task"], query["path"]
    listed = change_records.list_changes(server.options.state, server.options.resolve_workspace(query["workspace"]))
    found = (one for one in listed if task in {None, one.session_id} and (path is None or is_about(one, path)))
    with closing(listed):
        return ChangeList(changes=tuple(islice(found, query["limit"])))


def get_change(request: Request) -> ChangeDetail:
    server = request.server
    workspace = server.options.resolve_workspace(request.query["workspace"])
    change, diff = change_records.read_change(server.options.state, workspace, int(request.params["number"]))
    return ChangeDetail(change=change, diff=diff)


def undo_change(request: Request) -> UndoOutcome:
    return undo(open_own_session(request, request.query["workspace"]), int(request.params["number"]), request.body)


def redo_change(request: Request) -> UndoOutcome:
    return redo(open_own_session(request, request.query["workspace"]), request.body)


def undo(session: AbstractContextManager[Handrail], number: int, wanted: NewUndo) -> UndoOutcome:
    with session as rail:
        if wanted.preview:
            return UndoOutcome(diff=rail.preview_undo(number, resolve=wanted.resolve), result=None)
        return _build_outcome(rail.undo(number, resolve=wanted.resolve))


def redo(session: AbstractContextManager[Handrail], wanted: NewUndo) -> UndoOutcome:
    with session as rail:
        if wanted.preview:
            return UndoOutcome(diff=rail.preview_redo(resolve=wanted.resolve), result=None)
        return _build_outcome(rail.redo(resolve=wanted.resolve))


def _build_outcome(result: ToolResult[Any]) -> UndoOutcome:
    """ToolError if it was refused. The details of a conflict name the later changes and the ways out."""
    if result.error is not None:
        raise ToolError(result.error.code, result.error.message, details=result.error.details)
    return UndoOutcome(diff=result.data.diff if result.data is not None else "", result=result)


def is_about(record: ChangeRecord, path: str) -> bool:
    """Whether it changed this file, or a file in this folder."""
    folder = f"{path.rstrip('/')}/"
    paths = {name for change in record.changes for name in (change.path, change.renamed_from) if name}
    return any(name == path or name.startswith(folder) for name in paths)
