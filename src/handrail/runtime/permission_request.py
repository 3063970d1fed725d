"""Builds a permission request."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from handrail.changes.model import OverlayChanges
from handrail.policy.decide import list_permissions
from handrail.protocol.decisions import CommandFact, DecisionPart, ForeignFact
from handrail.protocol.errors import ToolError
from handrail.protocol.events import ToolCallPermissionRequired
from handrail.protocol.permissions import AnswerKind, FileBinding, PermissionRequest, Preview, classify_permissions
from handrail.protocol.wire import encode
from handrail.runtime.execute import digest_environment
from handrail.runtime.grants import collect_requested_folders, to_folder_request
from handrail.runtime.pending_call import PendingCall, find_preview_id, list_base_previews
from handrail.runtime.results import build_event_fields
from handrail.runtime.session import Session
from handrail.store.approvals import list_batch_calls
from handrail.store.inbox import list_batch_requests
from handrail.store.state_dir import make_id
from handrail.workspace.facts import build_command_fact

# § [runtime.question] Words the question about a call: what it is, why it asks, what it would change, and what can
# § be answered.

POSSIBLE: tuple[AnswerKind, ...] = ("once", "deny")
"""The answers that are always possible."""
GRANTING: tuple[AnswerKind, ...] = ("once", "session", "workspace", "deny")
"""The answers where every part that asks is of a class that may be granted."""
UNKEEPABLE: tuple[AnswerKind, ...] = ("output", "deny")
"""The answers if the preview was stopped: half of a result cannot be committed."""

_MAX_GIST_CHARS, _MAX_SENT_CHARS = 200, 20_000
"""Characters of what another server would be sent, in a few words and in full."""


def request_approval(session: Session, pending: PendingCall, earlier: Sequence[PendingCall]) -> None:
    """Puts the question, with what the call would change. `earlier`: the calls before it in its batch."""
    request = preview_and_build_request(session, pending, earlier)
    encode(request)  # a preview of a custom tool may hold anything; it must not be found out when others are written
    pending.pending_events.append(
        (ToolCallPermissionRequired, {**build_event_fields(pending), "permission_request": request})
    )
    pending.request = request


def preview_and_build_request(
    session: Session, pending: PendingCall, earlier: Sequence[PendingCall] = ()
) -> PermissionRequest:
    """The question as it would be put now. A command that can be is tried for it."""

    from handrail.runtime.preview import build_missing_preview, build_preview, judge_preview  # noqa: PLC0415

    # What is in a folder that is not open yet is shown to nobody, nor does a refusal tell of it.
    if folders := collect_requested_folders(pending.facts):
        told = (
            build_missing_preview(f"a yes opens {next(iter(folders))} first")
            if pending.facts.command is not None
            else None
        )
        return build_request(session, pending, told, bind_files(session, pending))
    # First what the files are, then what would change: a change in between then makes the answer void.
    based_on = bind_files(session, pending) if pending.facts.command is None else ()
    preview = build_preview(session, pending, earlier)
    if pending.facts.command is not None and (preview is None or preview.tried is None):
        based_on = bind_files(session, pending)
    return _with_parts(build_request(session, pending, preview, based_on), judge_preview(session, pending))


def _with_parts(request: PermissionRequest, found: tuple[DecisionPart, ...]) -> PermissionRequest:
    """The question with what asks of the result besides the command."""
    if not found or request.command is None:
        return request
    own = DecisionPart(subject=request.command, decision="confirm", rule=request.rule, reason=request.reason)
    return replace(request, parts=(*(request.parts or (own,)), *found))


def build_request(
    session: Session,
    pending: PendingCall,
    preview: Preview | None,
    based_on: tuple[FileBinding, ...] = (),
) -> PermissionRequest:
    """The question in full. `based_on`: nothing where the call was tried, since a commit does not run it again."""
    tool, facts, command = pending.tool, pending.facts.paths, pending.facts.command
    # What was opened to a command by a yes is opened for that call alone, so it asks again.
    grants = () if command is not None and command.hosts else pending.final_decision.grants
    request = PermissionRequest(
        id=make_id("ask"),
        tool_call_id=pending.call.tool_call_id,
        tool_name=tool.spec.own_name,
        server_name=tool.spec.server,
        permission_type=classify_permissions(tool.spec.permissions),
        description=_description(pending),
        rule=pending.final_decision.rule,
        reason=pending.final_decision.reason,
        permissions=list_permissions(tool.spec, pending.facts),
        answers=_answers(grants, preview),
        session_id=session.id,
        batch_id=pending.batch_id,
        paths=tuple(fact.path for fact in facts),
        command=command.text if command else None,
        cwd=build_command_fact(session.workspace, command.cwd, "read").real if command else None,
        tier=command.tier if command else None,
        background=command is not None and command.outlives,
        process=pending.facts.process.id if pending.facts.process else None,
        environment=digest_environment(session) if command else None,
        hosts=command.hosts if command else (),
        parts=pending.final_decision.parts,
        grants=grants,
        preview=preview,
        bound_files=based_on,
        tool_call_name=tool.spec.name if tool.spec.foreign is not None else None,
        fingerprint=tool.spec.foreign.fingerprint if tool.spec.foreign is not None else None,
    )
    return to_folder_request(request, pending.facts)


def require_answer(session: Session, pending: PendingCall) -> None:
    """A step: nobody was asked, because the preview failed, and will again, or because the mode is stricter now."""
    if pending.answer is None and pending.decision.decision == "confirm":
        preview_and_build_request(session, pending)
        raise ToolError("CONFLICT", "This needs a person's yes now, and nobody was asked. Nothing ran. Call again.")


def _answers(grants: tuple[str, ...], preview: Preview | None) -> tuple[AnswerKind, ...]:
    """The answers that are possible. `output` is where a command was tried."""
    *yes, no = GRANTING if grants else POSSIBLE
    if preview is None or preview.tried is None:
        return (*yes, no)
    return (*yes, "output", no) if preview.tried.ending == "exit" else UNKEEPABLE


def _of_server(pending: PendingCall, fact: ForeignFact) -> str:
    """Which tool of which server, and what it would be sent: of one that was changed all of it, since what changed is
    shown in the place of that."""
    sent = encode(pending.args).decode()
    most = _MAX_SENT_CHARS if fact.changed else _MAX_GIST_CHARS
    told = sent if len(sent) <= most else f"{sent[:most]}… ({len(sent):,} characters)"
    return f"{fact.tool} ({fact.server}) {told}"


def _description(pending: PendingCall) -> str:
    """The call in a few words; of a command, all of it, and where."""
    command = pending.facts.command
    if pending.facts.foreign is not None:
        return _of_server(pending, pending.facts.foreign)
    if pending.facts.process is not None:
        return f"Write to {pending.facts.process.id}, which runs: {pending.facts.process.command}"
    if (memory := pending.facts.memory) is not None:
        return f"{pending.tool.spec.title}: {memory.action} {memory.note}".strip()
    about = command.text if command is not None else ", ".join(fact.path for fact in pending.facts.paths)
    where = f"in {command.cwd}: " if command is not None and command.cwd != "." else ""
    return f"{pending.tool.spec.title} {where}{about}".strip()


# § [runtime.basis] What a person's yes is for: the files that a call is about, as they are when the question is
# § put.

_MAX_HASHED_BYTES = 64 * 1024 * 1024
"""Bytes of a file that a command only names: no script is larger, and hashing takes time."""
_MAX_NAMED_PATHS = 1_000


def bind_files(session: Session, pending: PendingCall) -> tuple[FileBinding, ...]:
    """The files that the call would change, and those that decide what it does."""
    facts, workspace = pending.facts.paths, session.workspace
    # What is read counts too where something is written: that may be made of it.
    changes = any(fact.access != "read" for fact in facts)
    found = {
        fact.path: FileBinding(path=fact.path, real=fact.real, hash=workspace.hash_of(fact.path))
        for fact in facts
        if changes and fact.real is not None
    }
    if pending.facts.command is not None:
        found = {basis.path: basis for basis in _named(session, pending.facts.command)} | found
    return tuple(found.values())


def _named(session: Session, command: CommandFact) -> list[FileBinding]:
    """The files whose names are in a command: the scripts that it runs, and what it gives to programs."""
    from handrail.policy.parse import parse_command  # noqa: PLC0415  tables that only commands need

    found: list[FileBinding] = []
    for path in parse_command(command.text, command.cwd).word_paths(command.seen)[:_MAX_NAMED_PATHS]:
        try:
            fact = build_command_fact(session.workspace, path, "read")
        except ToolError:
            continue  # no path can be like this
        if fact.kind == "file" and fact.real is not None and (fact.size or 0) <= _MAX_HASHED_BYTES:
            found.append(FileBinding(path=path, real=fact.real, hash=session.workspace.hash_of(path)))
    return found


# § [runtime.outdating] Whether what a question shows is still so: what others changed since it was put.

GONE = "what was tried is not kept any more"
ELSE = "what an earlier call of its batch would change"
FRESH_FOR = timedelta(minutes=5)
"""After that a preview counts as old: a command also reads what is outside the workspace, and nobody watches that."""


def list_outdated_files(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    """The files that others changed since; where it is more than files, that in words."""
    sealed = find_preview_id(request)
    session.opened_roots.refresh()
    try:
        if sealed is None:
            return _changed_files(session, request)
        if not _stands(session, request):
            return (ELSE,)
        return _stale(session, request, sealed)
    except ToolError:
        return (GONE,)
    finally:
        session.workspace.drop_cached()


def is_fresh(session: Session, request: PermissionRequest) -> bool:
    """Whether a new call may be shown this request's preview: no input of the preview changed since. The inputs of a
    command are taken to be all files of the workspace. False if it is not certain."""
    if list_outdated_files(session, request):
        return False
    preview, history = request.preview, session.recorder.history
    if preview is None or preview.tried is None:
        return True  # `bound_files` names all of its inputs
    if preview.time is None or not timedelta() <= datetime.now(UTC) - preview.time < FRESH_FOR:
        return False
    last = None if history.is_empty else next(history.log.latest(), None)
    if last is not None and last.time >= preview.time:
        return False
    from handrail.changes.overlay.commit import is_unchanged_since  # noqa: PLC0415  few commands are tried

    return is_unchanged_since(session.workspace, _examined(session, preview.tried.sealed).started)


def _stands(session: Session, request: PermissionRequest) -> bool:
    """Whether what it was tried on top of still waits to be committed, as it was then."""
    below = set(list_base_previews(request))
    if not below:
        return True
    database = session.journal.database
    below -= set(list_batch_calls(database, request.batch_id))
    for asked, said in list_batch_requests(database, request.batch_id):
        if said is not None and said.kind in {"deny", "output"}:
            below |= {asked.tool_call_id} & set(list_base_previews(request))
        else:
            below.discard(find_preview_id(asked) or "")
    return not below


def _stale(session: Session, request: PermissionRequest, sealed: str) -> tuple[str, ...]:
    """What others changed of what it would change, and of what it was tried on top of. Where an earlier call changes a
    file first, that file is that call's to look at."""
    from handrail.changes.overlay.commit import list_stale_paths  # noqa: PLC0415  few commands are tried

    below, found = list_base_previews(request), list[str]()
    for asked, _ in list_batch_requests(session.journal.database, request.batch_id) if below else ():
        if asked.tool_call_id in below:
            found += _changed_files(session, asked)
        elif find_preview_id(asked) in below:
            found += _stale(session, asked, find_preview_id(asked) or "")
    examined = _examined(session, sealed)
    expected = {os.fsdecode(path) for path in examined.expected}
    found += [path for path in list_stale_paths(session.workspace, examined) if path not in expected]
    return tuple(dict.fromkeys(found))


def _examined(session: Session, sealed: str) -> OverlayChanges:
    from handrail.changes.overlay.previews import load_preview  # noqa: PLC0415  few commands are tried

    return load_preview(session.recorder.history, sealed).examined


def _changed_files(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    return tuple(basis.path for basis in request.bound_files if _now(session, basis.path) != (basis.real, basis.hash))


def _now(session: Session, path: str) -> tuple[str | None, str | None]:
    try:
        return build_command_fact(session.workspace, path, "read").real, session.workspace.hash_of(path)
    except ToolError:
        return None, None
