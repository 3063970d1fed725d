"""What the calls of a batch would leave for a command after them, which is tried on top of that.

Of a command it is its trial. A file tool is carried out for it on copies of the files that it names: nothing of the
workspace is touched, and what it will do for real is done by the same code.
"""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.layered.sealing import unseal
from handrail.changes.layered.trial import PLAIN, Examined
from handrail.changes.recorder import Recorder
from handrail.protocol.change import State
from handrail.protocol.error import StoreError, ToolError
from handrail.runtime.session import Flight, Session
from handrail.runtime.steps import context_of
from handrail.runtime.trials import tell_nobody
from handrail.sandbox.layer.layer import Layer
from handrail.store.journal import Journal
from handrail.tools.apply_patch import apply_patch_tool
from handrail.tools.contract import Context, Tool
from handrail.tools.delete import delete_tool
from handrail.tools.edit import edit_tool
from handrail.tools.multi_edit import multi_edit_tool
from handrail.tools.write import write_tool
from handrail.workspace.workspace import Workspace

_TOOLS: dict[str, Callable[["_Marks", Recorder], Tool]] = {
    "write": write_tool,
    "edit": edit_tool,
    "multi_edit": multi_edit_tool,
    "delete": delete_tool,
    "apply_patch": apply_patch_tool,
}
_LARGEST = 8 * 1024 * 1024


class Below(NamedTuple):
    """What one call would leave."""

    name: str
    """Its trial; of a file tool, the call."""
    examined: Examined


class _Marks:
    """What the session has seen of files, and would have after the calls before."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._new: dict[str, bytes] = {}

    def seen(self, path: str) -> bytes | None:
        return self._new.get(path) or self._journal.seen(path)

    def mark_seen(self, path: str, mark: bytes) -> None:
        self._new[path] = mark

    def new(self) -> dict[str, bytes]:
        """What is not in the journal."""
        return dict(self._new)

    def add(self, marks: dict[str, bytes]) -> None:
        """Adds what was found out before."""
        self._new.update(marks)


class _Left(NamedTuple):
    below: Below
    marks: dict[str, bytes]


def left_by(session: Session, flights: Sequence[Flight]) -> list[Below] | None:
    """What each of these calls would leave, in their order; None where nobody can know that of one of them."""
    marks, found = _Marks(session.journal), list[Below]()
    for flight in flights:
        left = flight.left or _found_out(session, flight, found, marks)
        if left is None:
            return None
        flight.left = left  # those before it are the same for every command after it
        marks.add(left.marks)
        if left.below.examined.steps:
            found.append(left.below)
    return found


def _found_out(session: Session, flight: Flight, before: list[Below], marks: _Marks) -> _Left | None:
    try:
        below = _left_by(session, flight, [one.examined for one in before], marks)
    except (ToolError, StoreError, OSError):
        return None
    return None if below is None else _Left(below, marks.new())


def _left_by(session: Session, flight: Flight, before: list[Examined], marks: _Marks) -> Below | None:
    if flight.tried is not None:
        return Below(flight.tried, unseal(session.recorder.history, flight.tried).examined)
    make = _TOOLS.get(flight.name) if flight.tool.spec.category == "builtin" else None
    if make is None or not all(_is_plain(session, fact.path, fact.real, fact.kind) for fact in flight.facts.paths):
        return None
    roots = tuple(root.path for root in session.workspace.roots if root.writable)
    with session.commands.sandbox.new_layer(roots) as place:  # only for its folder, which is ours alone
        examined = _rehearsed(session, flight, _copied(session, flight, before, place), marks, place)
    return Below(flight.call.tool_call_id, examined)


def _is_plain(session: Session, path: str, real: str | None, kind: str) -> bool:
    """Whether a path is that of a small file of the workspace, or of none, with no link on the way."""
    if real is None or os.path.isabs(real) or os.path.normpath(path) != real or kind not in {"file", "missing"}:
        return False
    return kind == "missing" or os.path.getsize(os.path.join(session.workspace.main.path, real)) <= _LARGEST


def _copied(session: Session, flight: Flight, before: list[Examined], place: Layer) -> str:
    """A folder with copies of the files that a call names, as the calls before it would leave them."""
    states = {step.path: step.after for examined in before for step in examined.steps}
    copies = os.path.join(place.folder, "copies")
    os.mkdir(copies)
    for fact in flight.facts.paths:
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
    session: Session, real: str, states: dict[bytes, State | None], before: list[Examined]
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


def _rehearsed(session: Session, flight: Flight, copies: str, marks: _Marks, place: Layer) -> Examined:
    folder = os.path.join(place.folder, "history")
    os.mkdir(folder, 0o700)
    history = History(folder)
    with Workspace(copies) as shadow:
        try:
            tool = _TOOLS[flight.name](marks, Recorder(shadow, history, session.id, "rehearsal"))
            output = tool.run(_context(session, flight, shadow), flight.arguments)
            entry = history.log.of_call(session.id, flight.call.tool_call_id) if output.changes is not None else None
        finally:
            history.close()
    if entry is None:
        return Examined(started=place.started)
    steps, changes = entry.body.steps, entry.body.changes
    manners = (PLAIN,) * len(steps)
    files = [(step.path, step.after.hash) for step in steps if step.after and step.after.kind == "file"]
    contents = {digest: Path(copies, os.fsdecode(path)).read_bytes() for path, digest in files}
    return Examined(started=place.started, steps=steps, manners=manners, changes=changes, contents=contents)


def _context(session: Session, flight: Flight, shadow: Workspace) -> Context:
    return replace(context_of(session, flight), workspace=shadow, metadata=tell_nobody)
