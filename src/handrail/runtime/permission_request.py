"""The permission request about a call."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from handrail.changes.model import OverlayChanges
from handrail.changes.overlay.commit import is_unchanged_since, list_stale_paths
from handrail.changes.overlay.previews import load_preview
from handrail.policy.decide import list_permissions
from handrail.policy.parse import parse_command
from handrail.protocol.calls import ToolCall, quote_purpose
from handrail.protocol.changes import PREVIEW_GONE, Preview
from handrail.protocol.decisions import CommandFact, Decision, DecisionPart
from handrail.protocol.errors import StoreError, ToolError, UsageError
from handrail.protocol.events import ToolCallPermissionRequired, ToolCallStart
from handrail.protocol.permissions import (
    Answer,
    AnswerKind,
    FileBinding,
    PermissionRequest,
    classify_permissions,
)
from handrail.protocol.wire import encode
from handrail.runtime.decide import DECIDING
from handrail.runtime.execute import digest_environment, take_steps
from handrail.runtime.grants import collect_requested_folders, to_folder_request
from handrail.runtime.novelty import add_novelty
from handrail.runtime.pending_call import Approval, PendingCall, drop_preview, load_answer, load_call, replace_command
from handrail.runtime.preview import build_missing_preview, build_preview, judge_preview
from handrail.runtime.results import build_event_fields
from handrail.runtime.session import Session
from handrail.store.approvals import CallToPark, list_batch_calls, replace_request
from handrail.store.inbox import StoredRequest, find_last_request, find_stored_request, list_batch_requests
from handrail.store.state_dir import make_id
from handrail.workspace.facts import build_command_fact

FRESH_FOR = timedelta(minutes=5)
"""An older preview is not fresh: a command also reads files outside the workspace, which nothing watches."""

_BASE_CHANGED = "what an earlier call of its batch would change"
_MAX_GIST_CHARS, _MAX_SENT_CHARS = 200, 20_000
"""Characters of the arguments for another server, in short and in full."""
_MAX_HASHED_BYTES = 64 * 1024 * 1024
"""Bytes of a file that a command only names: no script is larger, and hashing takes time."""
_MAX_NAMED_PATHS = 1_000

# Building


def request_approval(session: Session, pending: PendingCall, earlier: Sequence[PendingCall] = ()) -> None:
    """A step: previews the call and builds the request about it. `earlier`: the calls before it in its batch."""
    command = pending.facts.command
    # Neither a preview nor a refusal shows the content of a folder that is not open yet.
    if folders := collect_requested_folders(pending.facts):
        preview = build_missing_preview(f"approval opens {next(iter(folders))} first") if command is not None else None
        pending.approval = Approval(build_request(session, pending, preview, bind_files(session, pending)))
        return
    # Bind before the preview: a change in between then voids the approval.
    bound_files = bind_files(session, pending) if command is None else ()
    preview = build_preview(session, pending, earlier)
    with drop_preview_on_failure(session, preview):
        if command is not None and (preview is None or preview.id is None):
            bound_files = bind_files(session, pending)
        request = build_request(session, pending, preview, bound_files)
        judged = judge_preview(session, pending, preview)
        request = _add_parts(request, judged.parts)
        if judged.edits:
            approvals = sum(Answer(kind=kind).approves for kind in request.answers)
            request = replace(request, answers=(*request.answers[:approvals], "edits", *request.answers[approvals:]))
        encode(request)  # the preview of a custom tool may hold anything
    pending.approval = Approval(request)


@contextmanager
def drop_preview_on_failure(session: Session, preview: Preview | None) -> Generator[None]:
    try:
        yield
    except BaseException:
        drop_preview(session, preview.id if preview is not None else None)
        raise


def require_answer(session: Session, pending: PendingCall) -> None:
    """A step: fails a resumed call that needs approval now and has none. Its preview may have failed when the batch was
    parked, and then fails again with the same error. Or the mode is stricter now."""
    if pending.answer is None and pending.decision.decision == "confirm":
        request_approval(session, pending)
        raise ToolError("CONFLICT", "This now needs the user's approval. Nothing ran. Call again.")


def build_request(
    session: Session, pending: PendingCall, preview: Preview | None, bound_files: tuple[FileBinding, ...] = ()
) -> PermissionRequest:
    """`bound_files`: none if the command ran in the preview, because a commit does not run it again."""
    tool, command, decision = pending.tool, pending.facts.command, pending.final_decision
    purpose = pending.call.purpose or None
    # Hosts are opened for one call only, so a command with hosts cannot be granted.
    grants = () if command is not None and command.hosts else decision.grants
    request = PermissionRequest(
        id=make_id("ask"),
        tool_call_id=pending.call.tool_call_id,
        tool_name=tool.spec.own_name,
        server_name=tool.spec.server,
        permission_type=classify_permissions(tool.spec.permissions),
        description=_describe_call(pending) + (f" (the model says: {quote_purpose(purpose)})" if purpose else ""),
        rule=decision.rule,
        reason=decision.reason,
        permissions=list_permissions(tool.spec, pending.facts),
        answers=_list_answers(preview, can_grant=bool(grants)),
        session_id=session.id,
        batch_id=pending.batch_id,
        paths=tuple(fact.path for fact in pending.facts.paths),
        command=command.text if command else None,
        cwd=build_command_fact(session.workspace, command.cwd, "read").real if command else None,
        tier=command.tier if command else None,
        background=command is not None and command.outlives,
        process=pending.facts.process.id if pending.facts.process else None,
        environment=digest_environment(session) if command else None,
        hosts=command.hosts if command else (),
        parts=decision.parts,
        grants=grants,
        preview=preview,
        bound_files=bound_files,
        tool_call_name=tool.spec.name if tool.spec.foreign is not None else None,
        fingerprint=tool.spec.foreign.fingerprint if tool.spec.foreign is not None else None,
        purpose=purpose,
    )
    return to_folder_request(request, pending.facts)


def _add_parts(request: PermissionRequest, parts: tuple[DecisionPart, ...]) -> PermissionRequest:
    """Adds the changes of the preview that need approval by themselves."""
    if not parts or request.command is None:
        return request
    own = DecisionPart(subject=request.command, decision="confirm", rule=request.rule, reason=request.reason)
    return replace(request, parts=(*(request.parts or (own,)), *parts))


def _list_answers(preview: Preview | None, *, can_grant: bool) -> tuple[AnswerKind, ...]:
    tried = preview.tried if preview is not None else None
    if tried is not None and tried.ending != "exit":
        return ("output", "deny")  # the command was stopped: half of a result cannot be committed
    grants: tuple[AnswerKind, ...] = ("session", "workspace") if can_grant else ()
    output: tuple[AnswerKind, ...] = ("output",) if tried is not None else ()
    return ("once", *grants, *output, "deny")


def _describe_call(pending: PendingCall) -> str:
    """The call in a few words. A command is shown in full, with its folder."""
    command, facts = pending.facts.command, pending.facts
    if facts.foreign is not None:
        # If the tool's description changed, the preview shows that change, so the arguments are here in full.
        arguments = encode(pending.args).decode()
        most = _MAX_SENT_CHARS if facts.foreign.changed else _MAX_GIST_CHARS
        if len(arguments) > most:
            arguments = f"{arguments[:most]}… ({len(arguments):,} characters)"
        return f"{facts.foreign.tool} ({facts.foreign.server}) {arguments}"
    if facts.process is not None:
        return f"Write to {facts.process.id}, which runs: {facts.process.command}"
    if (memory := facts.memory) is not None:
        return f"{pending.tool.spec.title}: {memory.action} {memory.note}".strip()
    about = command.text if command is not None else ", ".join(fact.path for fact in facts.paths)
    folder = f"in {command.cwd}: " if command is not None and command.cwd != "." else ""
    return f"{pending.tool.spec.title} {folder}{about}".strip()


# Checking a call that is not made


def check_call(session: Session, call: ToolCall) -> tuple[Decision, PermissionRequest | None]:
    """The decision about a call, and the request that a person would see if it needed approval. None if it is denied.
    Nothing of it is stored. ToolError if it is invalid, or fails in its preview."""
    decided, asking = PendingCall(call, session.characters), PendingCall(call, session.characters)
    asking.replace_call(replace(call, confirm=True))
    try:
        take_steps(session, decided, DECIDING)
        if decided.error is not None and decided.decision.decision == "deny" and decided.rules is not None:
            return decided.decision, None
        take_steps(session, asking, (*DECIDING, request_approval))
        if (error := decided.error or asking.error) is not None:
            raise ToolError(error.code, error.message, details=error.details)
        return decided.decision, asking.request
    finally:
        session.workspace.drop_cached()
        drop_preview(session, asking.preview_id)


# Binding to files


def bind_files(session: Session, pending: PendingCall) -> tuple[FileBinding, ...]:
    """The files that the call would change, and those that decide what it does."""
    facts, workspace = pending.facts.paths, session.workspace
    # A call that writes may write what it reads.
    changes = any(fact.access != "read" for fact in facts)
    bindings = {
        fact.path: FileBinding(path=fact.path, real=fact.real, hash=workspace.hash_of(fact.path))
        for fact in facts
        if changes and fact.real is not None
    }
    if pending.facts.command is not None:
        bindings = {file.path: file for file in _bind_named_files(session, pending.facts.command)} | bindings
    return tuple(bindings.values())


def _bind_named_files(session: Session, command: CommandFact) -> list[FileBinding]:
    """The files that a command names: the scripts that it runs, and the input of its programs."""
    bindings: list[FileBinding] = []
    for path in parse_command(command.text, command.cwd).word_paths(command.seen)[:_MAX_NAMED_PATHS]:
        try:
            fact = build_command_fact(session.workspace, path, "read")
        except ToolError:
            continue  # the word cannot be a path
        if fact.kind == "file" and fact.real is not None and (fact.size or 0) <= _MAX_HASHED_BYTES:
            bindings.append(FileBinding(path=path, real=fact.real, hash=session.workspace.hash_of(path)))
    return bindings


# Whether it is outdated


def list_outdated_files(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    """The files that others changed since the request was made. If the preview itself is void, a phrase says why."""
    session.opened_roots.refresh()
    try:
        if request.preview_id is None:
            return _list_changed_files(session, request)
        if not _is_base_pending(session, request):
            return (_BASE_CHANGED,)
        return _list_stale_paths(session, request, request.preview_id)
    except ToolError:
        return (PREVIEW_GONE,)
    finally:
        session.workspace.drop_cached()


def is_fresh(session: Session, request: PermissionRequest) -> bool:
    """Whether a new call may be shown the preview of this request: none of its inputs changed. All files of the
    workspace count as inputs of a command. False if that is not certain."""
    if list_outdated_files(session, request):
        return False
    preview, history = request.preview, session.recorder.history
    if preview is None or preview.id is None:
        return True  # `bound_files` holds all its inputs
    if preview.time is None or not timedelta() <= datetime.now(UTC) - preview.time < FRESH_FOR:
        return False
    last = None if history.is_empty else next(history.log.latest(), None)
    if last is not None and last.time >= preview.time:
        return False
    return is_unchanged_since(session.workspace, _load_changes(session, preview.id).started)


def _is_base_pending(session: Session, request: PermissionRequest) -> bool:
    """Whether all previews and calls that the preview builds on can still be committed."""
    unmet = set(request.base_previews)
    if not unmet:
        return True
    database = session.journal.database
    unmet -= set(list_batch_calls(database, request.batch_id))
    for other, answer in list_batch_requests(database, request.batch_id):
        if answer is not None and answer.kind in {"deny", "output"}:
            unmet |= {other.tool_call_id} & set(request.base_previews)
        else:
            unmet.discard(other.preview_id or "")
    return not unmet


def _list_stale_paths(session: Session, request: PermissionRequest, preview_id: str) -> tuple[str, ...]:
    """The changed files among those that a preview, or a preview below it, would change. If an earlier call changes a
    file first, that call's request tells whether it is outdated."""
    base, paths = request.base_previews, list[str]()
    for other, _ in list_batch_requests(session.journal.database, request.batch_id) if base else ():
        if other.tool_call_id in base:
            paths += _list_changed_files(session, other)
        elif other.preview_id is not None and other.preview_id in base:
            paths += _list_stale_paths(session, other, other.preview_id)
    changes = _load_changes(session, preview_id)
    expected = {os.fsdecode(path) for path in changes.expected}
    paths += [path for path in list_stale_paths(session.workspace, changes) if path not in expected]
    return tuple(dict.fromkeys(paths))


def _load_changes(session: Session, preview_id: str) -> OverlayChanges:
    return load_preview(session.recorder.history, preview_id).examined


def _list_changed_files(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    return tuple(file.path for file in request.bound_files if not _is_unchanged(session, file))


def _is_unchanged(session: Session, file: FileBinding) -> bool:
    try:
        real = build_command_fact(session.workspace, file.path, "read").real
        return (real, session.workspace.hash_of(file.path)) == (file.real, file.hash)
    except ToolError:
        return (file.real, file.hash) == (None, None)


# Retrying


def load_request(session: Session, request_id: str) -> StoredRequest:
    stored = find_stored_request(session.journal.database, request_id)
    if stored is None:
        raise UsageError(f"this session has no permission request {request_id[:80]!r}")
    return stored


def retry(session: Session, request_id: str, command: str | None) -> PermissionRequest:
    """Previews the command of a request again, or another command instead. The request keeps its id. ToolError if
    policy refuses the new command: then the request stays as it was."""
    stored = load_request(session, request_id)
    if not stored.answered and stored.request.command is None:
        raise UsageError(f"the permission request {request_id!r} is not about a command, so it has no preview")
    return _replace_request(session, stored, command, keep_id=True)


def refresh(session: Session, request_id: str) -> PermissionRequest:
    """The request if its preview is fresh, else one with a new preview. That has a new id: an answer to the old preview
    is none to the new one. ToolError if there can be no preview now: then the request stays as it was."""
    stored = load_request(session, request_id)
    if not stored.answered and is_fresh(session, stored.request):
        return stored.request
    return _replace_request(session, stored, None, keep_id=False)


def _replace_request(
    session: Session, stored: StoredRequest, command: str | None, *, keep_id: bool
) -> PermissionRequest:
    """Builds a pending request anew and stores it in place of the old one. The call can be cancelled meanwhile."""
    old, call_ids = stored.request, (stored.request.tool_call_id,)
    if stored.answered:
        raise UsageError(f"the permission request {old.id!r} was answered already")
    pending = _load_undecided(session, old, command)
    session.cancel_tokens.begin(call_ids)
    try:
        new = _rebuild(session, pending, old)
        if keep_id:
            new = replace(new, id=old.id, revision=old.revision + 1)
        _store_replacement(session, pending, stored, new)
    finally:
        session.cancel_tokens.end(call_ids)
        session.workspace.drop_cached()
    drop_preview(session, old.preview_id)
    session.journal.deliver()
    return new


def _load_undecided(session: Session, request: PermissionRequest, command: str | None) -> PendingCall:
    """The call of a request, as if nobody had been asked about it."""
    entry = session.journal.entry(request.tool_call_id)
    if entry is None:
        raise UsageError(f"the call of the permission request {request.id!r} is not in this session")
    pending = load_call(session.journal, session.offer, entry, session.characters)
    pending.approval = None
    if command is not None and "command" not in pending.args:
        raise UsageError(f"{pending.name} builds its command itself, so another one cannot be given")
    if command is not None:
        pending.replace_call(replace_command(pending.call, command))
    if request.environment is not None and digest_environment(session) != request.environment:
        message = "The command would get other environment variables than at the request."
        raise ToolError("CONFLICT", f"{message} No preview ran. Try again in the workspace of the request.")
    return pending


def _rebuild(session: Session, pending: PendingCall, old: PermissionRequest) -> PermissionRequest:
    """The request as it is now, also if policy would allow the call by now."""
    earlier = _load_earlier_calls(session, old)
    take_steps(session, pending, (*DECIDING, partial(request_approval, earlier=earlier)))
    if pending.error is not None:
        raise ToolError(pending.error.code, pending.error.message, details=pending.error.details)
    add_novelty(session, (pending,))
    if pending.request is None:
        raise AssertionError("a call without error has its request")
    entry = session.journal.entry(old.tool_call_id)
    start = session.journal.event(entry.start_seq) if entry is not None else None
    called: Any = start.args if isinstance(start, ToolCallStart) else {}
    return replace(pending.request, edited=pending.request.command != called.get("command", pending.request.command))


def _load_earlier_calls(session: Session, request: PermissionRequest) -> list[PendingCall]:
    """The calls before it in its batch that have no result yet, with their answers."""
    call_ids = list_batch_calls(session.journal.database, request.batch_id)
    earlier: list[PendingCall] = []
    for call_id in call_ids[: call_ids.index(request.tool_call_id)] if request.tool_call_id in call_ids else []:
        entry = session.journal.entry(call_id)
        if entry is not None and entry.state != "finished":
            pending = load_call(session.journal, session.offer, entry, session.characters)
            load_answer(session, pending)
            earlier.append(pending)
    return earlier


def _store_replacement(session: Session, pending: PendingCall, stored: StoredRequest, new: PermissionRequest) -> None:
    events = ((ToolCallPermissionRequired, {**build_event_fields(pending), "permission_request": new}),)
    call = CallToPark(pending.call.tool_call_id, pending.call_context, events)
    try:
        if not replace_request(session.journal, stored, new, call):
            raise UsageError(_describe_race(session, stored.request.id))
    except Exception:
        drop_preview(session, new.preview_id)
        raise
    except BaseException:  # an interrupt, maybe when the new request was just stored
        with suppress(StoreError):
            last = find_last_request(session.journal.database, new.tool_call_id)
            if last is None or last.preview_id != new.preview_id:
                drop_preview(session, new.preview_id)
        raise


def _describe_race(session: Session, request_id: str) -> str:
    if load_request(session, request_id).answered:
        return f"the permission request {request_id!r} was answered meanwhile; the new preview was dropped"
    return f"another program retried the permission request {request_id!r} meanwhile; check its new preview"
