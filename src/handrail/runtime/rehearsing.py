"""What the calls of a batch would leave for a command after them, which is tried on top of that.

For a command that is its preview. A file tool is carried out for it on copies of the files that it names: nothing of
the workspace is touched, and what it will do for real is done by the same code.
"""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.layered.sealing import load_preview
from handrail.changes.layered.trial import PLAIN_OVERLAY_PLACEMENT, OverlayChanges
from handrail.changes.recorder import Recorder
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.runtime.session import PendingCall, Session
from handrail.runtime.steps import build_context
from handrail.runtime.trials import ignore_metadata
from handrail.sandbox.layer.layer import Overlay
from handrail.store.journal import SessionJournal
from handrail.tools.apply_patch import build_apply_patch_tool
from handrail.tools.contract import Context, Tool
from handrail.tools.delete import build_delete_tool
from handrail.tools.edit import build_edit_tool
from handrail.tools.multi_edit import build_multi_edit_tool
from handrail.tools.write import build_write_tool
from handrail.workspace.workspace import Workspace

_TOOLS: dict[str, Callable[["_Marks", Recorder], Tool]] = {
    "write": build_write_tool,
    "edit": build_edit_tool,
    "multi_edit": build_multi_edit_tool,
    "delete": build_delete_tool,
    "apply_patch": build_apply_patch_tool,
}
_MAX_FILE_BYTES = 8 * 1024 * 1024


class SimulatedChange(NamedTuple):
    """What one call would leave."""

    name: str
    """Its preview; of a file tool, the call."""
    examined: OverlayChanges


class _Marks:
    """What the session has seen of files, and would have after the calls before."""

    def __init__(self, journal: SessionJournal) -> None:
        self._journal = journal
        self._new: dict[str, bytes] = {}

    def get_mark(self, path: str) -> bytes | None:
        return self._new.get(path) or self._journal.get_mark(path)

    def set_mark(self, path: str, mark: bytes) -> None:
        self._new[path] = mark

    def new(self) -> dict[str, bytes]:
        """What is not in the journal."""
        return dict(self._new)

    def add(self, marks: dict[str, bytes]) -> None:
        """Adds what was found out before."""
        self._new.update(marks)


class _Left(NamedTuple):
    below: SimulatedChange
    marks: dict[str, bytes]


def simulate_calls(session: Session, batch: Sequence[PendingCall]) -> list[SimulatedChange] | None:
    """What each of these calls would leave, in their order; None where nobody can know that of one of them."""
    marks, found = _Marks(session.journal), list[SimulatedChange]()
    for pending in batch:
        left = pending.simulated or _found_out(session, pending, found, marks)
        if left is None:
            return None
        pending.simulated = left  # those before it are the same for every command after it
        marks.add(left.marks)
        if left.below.examined.steps:
            found.append(left.below)
    return found


def _found_out(session: Session, pending: PendingCall, before: list[SimulatedChange], marks: _Marks) -> _Left | None:
    try:
        below = _left_by(session, pending, [one.examined for one in before], marks)
    except (ToolError, StoreError, OSError):
        return None
    return None if below is None else _Left(below, marks.new())


def _left_by(
    session: Session, pending: PendingCall, before: list[OverlayChanges], marks: _Marks
) -> SimulatedChange | None:
    if pending.preview_id is not None:
        return SimulatedChange(pending.preview_id, load_preview(session.recorder.history, pending.preview_id).examined)
    make = _TOOLS.get(pending.name) if pending.tool.spec.category == "builtin" else None
    if make is None or not all(_is_plain(session, fact.path, fact.real, fact.kind) for fact in pending.facts.paths):
        return None
    roots = tuple(root.path for root in session.workspace.roots if root.writable)
    with session.commands.sandbox.create_overlay(roots) as place:  # only for its folder, which is ours alone
        examined = _rehearsed(session, pending, _copied(session, pending, before, place), marks, place)
    return SimulatedChange(pending.call.tool_call_id, examined)


def _is_plain(session: Session, path: str, real: str | None, kind: str) -> bool:
    """Whether a path is that of a small file of the workspace, or of none, with no link on the way."""
    if real is None or os.path.isabs(real) or os.path.normpath(path) != real or kind not in {"file", "missing"}:
        return False
    return kind == "missing" or os.path.getsize(os.path.join(session.workspace.main.path, real)) <= _MAX_FILE_BYTES


def _copied(session: Session, pending: PendingCall, before: list[OverlayChanges], place: Overlay) -> str:
    """A folder with copies of the files that a call names, as the calls before it would leave them."""
    states = {step.path: step.after for examined in before for step in examined.steps}
    copies = os.path.join(place.folder, "copies")
    os.mkdir(copies)
    for fact in pending.facts.paths:
        real = fact.real or ""
        _copy_folders(session, real, copies, states)
        data = _content(session, real, states, before)
        if data is not None:
            with open(os.path.join(copies, real), "wb") as file:
                file.write(data[0])
            os.chmod(os.path.join(copies, real), data[1])
    return copies


def _copy_folders(session: Session, real: str, copies: str, states: dict[bytes, State | None]) -> None:
    *folders, _ = real.split("/")
    for number in range(len(folders)):
        inner = "/".join(folders[: number + 1])
        there, copy = os.path.join(session.workspace.main.path, inner), os.path.join(copies, inner)
        known = os.fsencode(inner) in states
        state = states.get(os.fsencode(inner))
        if (known and (state is None or state.kind != "folder")) or (not known and not os.path.isdir(there)):
            return
        if not os.path.isdir(copy):
            os.mkdir(copy)
            os.chmod(copy, (state.mode if state else None) or stat.S_IMODE(os.stat(there).st_mode))


def _content(
    session: Session, real: str, states: dict[bytes, State | None], before: list[OverlayChanges]
) -> tuple[bytes, int] | None:
    """What a file would hold by then, and its mode."""
    if os.fsencode(real) in states:
        state = states[os.fsencode(real)]
        if state is None:
            return None
        held = next((one.contents[state.hash] for one in before if state.hash in one.contents), None)
        data = b"".join(session.recorder.history.blobs.chunks(state.hash)) if held is None else held
        return data, 0o644 if state.mode is None else state.mode
    try:
        with session.workspace.open_file(real) as opened, open(os.dup(opened.descriptor), "rb") as file:
            return file.read(), stat.S_IMODE(os.fstat(opened.descriptor).st_mode)
    except ToolError as error:
        if error.code == "NOT_FOUND":
            return None
        raise


def _rehearsed(session: Session, pending: PendingCall, copies: str, marks: _Marks, place: Overlay) -> OverlayChanges:
    folder = os.path.join(place.folder, "history")
    os.mkdir(folder, 0o700)
    history = History(folder)
    with Workspace(copies) as shadow:
        try:
            tool = _TOOLS[pending.name](marks, Recorder(shadow, history, session.id, "rehearsal"))
            output = tool.run(_context(session, pending, shadow), pending.arguments)
            entry = history.log.of_call(session.id, pending.call.tool_call_id) if output.changes is not None else None
        finally:
            history.close()
    if entry is None:
        return OverlayChanges(started=place.started)
    steps, changes = entry.body.steps, entry.body.changes
    placements = (PLAIN_OVERLAY_PLACEMENT,) * len(steps)
    files = [(step.path, step.after.hash) for step in steps if step.after and step.after.kind == "file"]
    contents = {digest: Path(copies, os.fsdecode(path)).read_bytes() for path, digest in files}
    return OverlayChanges(started=place.started, steps=steps, manners=placements, changes=changes, contents=contents)


def _context(session: Session, pending: PendingCall, shadow: Workspace) -> Context:
    return replace(build_context(session, pending), workspace=shadow, metadata=ignore_metadata)
