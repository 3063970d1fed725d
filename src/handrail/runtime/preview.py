"""Previews a call for its permission request."""

import os
import stat
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.model import PLAIN_OVERLAY_PLACEMENT, OverlayChanges
from handrail.changes.overlay.previews import load_preview
from handrail.changes.recorder import Recorder
from handrail.protocol.changes import State
from handrail.protocol.decisions import CommandFact, Decision, DecisionPart, Mode
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import ASIDE
from handrail.runtime.decide import build_context, judge_call_changes
from handrail.runtime.session import PendingCall, Session
from handrail.sandbox.overlay.overlay import Overlay
from handrail.store.journal import SessionJournal
from handrail.tools.apply_patch import build_apply_patch_tool
from handrail.tools.delete import build_delete_tool
from handrail.tools.edit import build_edit_tool
from handrail.tools.multi_edit import build_multi_edit_tool
from handrail.tools.tool import CommandContext, Context, Tool
from handrail.tools.write import build_write_tool
from handrail.workspace.workspace import Workspace

# § [runtime.trials] Commands are tried before somebody is asked about them: whether that can be, and what asks of
# § what came of it.

_REFUSALS = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE", "CANCELLED"})
"""Errors of what the command did in its preview, not of the preview itself: nobody is asked then."""
_CHANGED_FIRST = "an earlier call of this batch changes files first"
_MAX_SUBJECT_CHARS = 80


def build_preview(
    session: Session,
    pending: PendingCall,
    earlier: Sequence[PendingCall] = (),
) -> Preview | None:
    """What a person is shown before they answer. If the call fails in its preview, that is the call's failure. If no
    preview could be made, the request says so. `earlier`: the calls before it in its batch."""
    if pending.facts.command is None:
        return _shown(session, pending)
    reason = _why_not(session, pending, pending.facts.command)
    if reason is not None:
        return build_missing_preview(reason)
    changing = [one for one in earlier if can_change_files(one)]
    if not changing:
        return _tried(session, pending, ())

    below = simulate_calls(session, changing)
    return build_missing_preview(_CHANGED_FIRST) if below is None else _tried(session, pending, tuple(below))


def find_preview_obstacle(command: CommandFact, *, mode: Mode, tries: bool) -> str | None:
    """Why a command is not tried, in words, as far as that does not depend on the machine; None where it may be."""
    if not tries:
        return "the setting preview is never"
    if mode == "plan":
        return "plan mode tries nothing"
    if command.background:
        return "it goes on after its call"
    if command.yields:
        return "it may go on after its call (yieldMs)"
    return None


def build_missing_preview(reason: str) -> Preview:
    """What is shown in the place of a preview."""
    return Preview(kind="none", text=reason)


def _why_not(session: Session, pending: PendingCall, command: CommandFact) -> str | None:
    rules = pending.rules
    mode = session.rules.mode if rules is None else rules.mode
    reason = find_preview_obstacle(command, mode=mode, tries=session.preview_enabled)
    if reason is None and command.hosts:
        reason = f"needs the network ({_what_reaches(command, pending.decision)})"
    if reason is None and not command.has_overlay:
        why = session.commands.find_overlay_obstacle(session.workspace.roots)
        reason = f"no overlay here: {why or 'the sandbox has none'}"
    return reason


def can_change_files(pending: PendingCall) -> bool:
    """Whether a call that did not run yet may change files."""
    if pending.error is not None or ASIDE.issuperset(pending.tool.spec.side_effects):
        return False
    if pending.request is not None and "once" not in pending.request.answers:
        return False  # its preview was stopped, so nothing of it is committed
    if pending.answer is not None and pending.answer.kind in {"deny", "output"}:
        return False
    command = pending.facts.command
    if command is None:
        return pending.facts.process is None
    from handrail.policy.parse import parse_fact  # noqa: PLC0415  tables that only commands need

    return not parse_fact(command).is_read_only


def _what_reaches(command: CommandFact, decision: Decision) -> str:
    """The part of the command that needs the network, as far as one can tell; else the hosts."""
    from handrail.policy.network.needs import NetworkNeeds, find_network_needs  # noqa: PLC0415  few commands need one
    from handrail.policy.parse import parse_command  # noqa: PLC0415  as above

    for part in decision.parts or (decision,):
        needs = find_network_needs(parse_command(part.subject, command.cwd))
        if needs != NetworkNeeds():
            return part.subject if len(part.subject) <= _MAX_SUBJECT_CHARS else f"{part.subject[:_MAX_SUBJECT_CHARS]}…"
    return ", ".join(command.hosts[:3])


def _tried(session: Session, pending: PendingCall, below: "tuple[SimulatedChange, ...]") -> Preview:
    try:
        preview = _shown(session, pending, below)
    except ToolError as error:
        if error.code in _REFUSALS or "limits" in error.named_details:
            raise
        return build_missing_preview(f"it could not be tried: {error.message}")
    except (OSError, StoreError) as error:  # no room for an overlay, or for what came of it
        return build_missing_preview(f"it could not be tried: {error}")
    if preview is None:
        return build_missing_preview("nothing tries it")
    if preview.tried is not None:
        pending.preview_id = preview.tried.sealed
        preview = replace(preview, tried=replace(preview.tried, on=tuple(one.name for one in below)))
    if session.is_cancelled(pending.call.tool_call_id):
        raise ToolError("CANCELLED", "The call was cancelled. Nothing was kept.")
    return preview


def judge_preview(session: Session, pending: PendingCall) -> tuple[DecisionPart, ...]:
    """What asks of what the preview changed, whatever the command is. ToolError if no approval can allow it: then
    nobody is asked. All of it is judged, however much of it is shown."""
    if pending.preview_id is None:
        return ()
    from handrail.changes.overlay.changes import read_preview_configs  # noqa: PLC0415  few commands are tried
    from handrail.changes.overlay.previews import load_preview  # noqa: PLC0415

    examined = load_preview(session.recorder.history, pending.preview_id).examined
    configs = read_preview_configs(session.workspace, session.recorder.history, examined)
    decision = judge_call_changes(session, pending, examined.changes, configs)
    if decision.decision == "allow":
        return ()
    if decision.decision == "deny":
        message = f"Rule {decision.rule} forbids what it would change: {decision.reason}. It was dropped."
        details = {"rule": decision.rule, "reason": decision.reason}
        advice = "Do not try another way; say what you need it for."
        raise ToolError(decision.code or "POLICY_DENIED", f"{message} {advice}", details=details)
    pending.outcome_decision = None  # the person is asked about the command, and sees this beside it
    found = decision.parts or (
        DecisionPart(subject=decision.subject, decision="confirm", rule=decision.rule, reason=decision.reason),
    )
    return tuple(part for part in found if part.decision == "confirm")


def _shown(
    session: Session,
    pending: PendingCall,
    below: "tuple[SimulatedChange, ...]" = (),
) -> Preview | None:
    if pending.tool.preview is None:
        return None
    # The call has not begun, so there is nothing to tell about it.
    silent = replace(build_context(session, pending), metadata=ignore_metadata)
    if isinstance(silent, CommandContext):
        silent = replace(
            silent,
            earlier_changes=tuple(one.examined for one in below),
        )
    preview = pending.tool.preview(silent, pending.arguments)
    return replace(preview, time=preview.time or datetime.now(UTC))


def ignore_metadata(**_: object) -> None:
    """What a call tells on its way that is not carried out."""


# § [runtime.rehearsing] What the calls of a batch would leave for a command after them, which is tried on top of
# § that. For a command that is its preview. A file tool is carried out for it on copies of the files that it names:
# § nothing of the workspace is touched, and what it will do for real is done by the same code.

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
