"""Runs a call that was allowed."""

import contextlib
import time
from collections.abc import Callable, Generator
from functools import partial
from itertools import takewhile
from typing import Any

from msgspec.structs import asdict, replace

from handrail.policy.decide import is_network_closed
from handrail.protocol import events
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.events import ToolCallRunning, ToolCallUpdate
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.titles import describe_running_call
from handrail.protocol.tool_spec import SideEffect
from handrail.protocol.wire import escape_surrogates, sanitize_json
from handrail.runtime import results
from handrail.runtime.decide import Step, decide_without_undo, judge_call_changes, recheck_server, recheck_skills
from handrail.runtime.locks import Lock
from handrail.runtime.pending_call import PendingCall, build_internal_error, drop_preview
from handrail.runtime.results import build_event_fields, describe_interrupted, record_state
from handrail.runtime.session import Session
from handrail.store.grants import hash_variables
from handrail.store.journal import DuplicateCallError
from handrail.tools.tool import ApprovalNeededError, CallLimits, CommandContext, Context
from handrail.workspace.facts import build_command_fact
from handrail.workspace.roots import clip_path

_MAX_LOCKED_FILES = 100
"""Above this, the roots of the files are locked instead: a process has only so many descriptors."""
_RECORDED_AT_END: frozenset[SideEffect] = frozenset(("conversation",))
"""Side effects that are only stored with the result."""
SLOW_SECONDS = 1.0
"""A built-in tool that takes longer announces itself."""
_NOT_STARTED = "The call was interrupted before it ran. Nothing was done."


def execute_call(session: Session, pending: PendingCall) -> None:
    """Runs a decided call and records its result.

    Two things are left to the batch: an interrupt, which `close_interrupted` settles, and an ApprovalNeededError, which
    leaves the call without a result.
    """
    try:
        if not pending.ran_ahead:
            take_steps(session, pending, select_steps(session, pending))
        close_call(session, pending)
    finally:
        release_call(session, pending)
        session.journal.deliver()


def take_steps(session: Session, pending: PendingCall, steps: tuple[Step, ...]) -> None:
    """Takes one step after the other until one fails. The failure becomes the error of the call."""
    if pending.error is not None:
        return
    try:
        if pending.roots:
            with session.workspace.root_sets.lend(pending.roots):
                _take_each(session, pending, steps)
        else:
            _take_each(session, pending, steps)
    except ToolError as error:
        pending.fail(error)
    except (DuplicateCallError, ApprovalNeededError):
        raise
    except StoreError as error:  # not of the journal, so the call can have a result
        pending.fail(error.to_tool_error(_describe_progress(session, pending)))
    except Exception as error:  # a defect of handrail or of a custom tool
        pending.fail(build_internal_error(error, session.crashes))


def _take_each(session: Session, pending: PendingCall, steps: tuple[Step, ...]) -> None:
    for step in steps:
        step(session, pending)


def close_call(session: Session, pending: PendingCall) -> None:
    if pending.result is None:
        results.build_error_result(pending)
    results.finish(session, pending)
    drop_preview(session, pending.preview_id)


def fail_unrecorded(session: Session, pending: PendingCall, error: StoreError) -> None:
    """Gives a call a result that cannot be recorded. A recorded result stays."""
    if pending.result is None or pending.journal_state != "finished":
        progress = _describe_progress(session, pending)
        pending.error = pending.result = None
        pending.fail(error.to_tool_error(progress))
        results.build_error_result(pending)


# Steps


def _wait_in_queue(session: Session, pending: PendingCall) -> None:
    """Waits until no other call with effects runs in the session, in any process."""
    if not pending.tool.spec.side_effects:
        return
    conflict = "Another call of this session still runs. Nothing was run. Try again later."
    if session.queue.held_here:  # a tool called a tool, and would wait for itself
        raise ToolError("CONFLICT", conflict)
    pending.releases.append(session.queue.leave)
    if not session.queue.enter(_build_cancel_check(session, pending)):
        raise _build_cancelled_error(session)
    _lock(session, pending, session.locks.of(f"session:{session.folder}"), session.queue_seconds, conflict)


def _take_locks(session: Session, pending: PendingCall) -> None:
    """Locks the files that the call will change, always in the same order. Other sessions wait."""
    command = pending.facts.command
    locks_at_commit = command is not None and not command.outlives  # or it locks whole roots by itself
    if not pending.tool.spec.side_effects or locks_at_commit:
        return
    changed = sorted({fact.real for fact in pending.facts.paths if fact.access != "read" and fact.real is not None})
    are_many = len(changed) > _MAX_LOCKED_FILES
    for root in sorted({session.workspace.root_path(real) for real in changed}):
        _lock_path(session, pending, session.locks.of_root(root, alone=are_many), root)
    if are_many:
        return
    for real in changed:
        resource = f"file:{session.workspace.main.path}/{real}" if not real.startswith("/") else f"file:{real}"
        _lock_path(session, pending, session.locks.of(resource), real)
    # A file with several names is locked under all of them.
    shared = {session.workspace.shared_file(real): real for real in changed}
    for identity, real in sorted((identity, real) for identity, real in shared.items() if identity is not None):
        _lock_path(session, pending, session.locks.of(f"inode:{identity}"), real)


def _check_approval(session: Session, pending: PendingCall) -> None:
    """Refuses the call if its approval is outdated: paths lead elsewhere, files changed, or the sandbox is weaker."""
    if pending.request is not None:
        _check_surroundings(session, pending, pending.request)
    if pending.approval is None or not pending.approval.bound_files:
        return
    known = {fact.path: fact.real for fact in pending.facts.paths}
    for bound in pending.approval.bound_files:
        path = bound.path
        real = known[path] if path in known else build_command_fact(session.workspace, path, "read").real
        if real != bound.real or session.workspace.hash_of(path) != bound.hash:
            message = f"The preview was out of date: {clip_path(path)} changed. Nothing was kept."
            if pending.facts.command is not None:  # it had no preview
                message = f"{clip_path(path)} changed since the request. Nothing was run."
            raise ToolError("CONFLICT", f"{message} Call again.")


def _record_start(session: Session, pending: PendingCall) -> None:
    """Records a call with effects before the first effect. A custom tool may always have effects."""
    spec = pending.tool.spec
    if spec.category != "builtin" or not _RECORDED_AT_END.issuperset(spec.side_effects):
        _mark_started(session, pending)


def _mark_started(session: Session, pending: PendingCall) -> None:
    if pending.journal_state in {"started", "finished"}:
        return
    record_state(session, pending, "started", (ToolCallRunning, build_event_fields(pending)))
    session.journal.deliver()


def _run_tool(session: Session, pending: PendingCall) -> None:
    tool = pending.tool
    if session.is_cancelled(pending.call.tool_call_id):
        raise _build_cancelled_error(session)
    if tool.spec.side_effects:
        session.recorder.turn = session.turn or resolve_turn(session, pending)
    context = build_context(session, pending)
    if tool.spec.category == "builtin" and tool.spec.stage != "read":  # a read takes no time
        context = replace(context, cancelled=_announce_if_slow(context, pending))
    if tool.spec.category == "custom":
        from handrail.runtime.custom_call import run_custom_tool  # noqa: PLC0415  few sessions have custom tools

        explain = partial(build_internal_error, folder=session.crashes)
        pending.output = run_custom_tool(tool, context, pending.arguments, pending.roots, explain)
    else:
        pending.output = tool.run(context, pending.arguments)


def _announce_if_slow(context: Context, pending: PendingCall) -> Callable[[], bool]:
    """The check for cancellation, which long work makes again and again. It sends the title of a slow call once."""
    is_cancelled, due = context.cancelled, time.monotonic() + SLOW_SECONDS
    announced = False

    def check() -> bool:
        nonlocal announced
        if not announced and time.monotonic() > due:
            announced = True
            with contextlib.suppress(StoreError):  # the result says all of it
                context.metadata(title=describe_running_call(pending.name, pending.call.args))
        return is_cancelled()

    return check


def _note_edited_command(_: Session, pending: PendingCall) -> None:
    request, output = pending.request, pending.output
    if request is None or not request.edited or output is None:
        return
    note = f"A person changed the command to: {request.command}"
    pending.output = replace(output, content=f"{note}\n{output.content}", summary=f"{output.summary} (changed command)")


RUNNING: tuple[Step, ...] = (
    _wait_in_queue,
    recheck_skills,
    _take_locks,
    recheck_server,
    _check_approval,
    _record_start,
    _run_tool,
    _note_edited_command,
    results.build_result,
)
LOOKING: tuple[Step, ...] = (_run_tool, results.build_result)
_PREPARING: tuple[Step, ...] = (recheck_skills, _check_approval, _mark_started)
"""What calls that then run in parallel do before, one after the other."""


def select_steps(session: Session, pending: PendingCall) -> tuple[Step, ...]:
    """The steps that run the call. A call without effects that needed no approval skips queue, locks and checks.

    A call that runs in parallel has taken the other steps before.
    """
    return LOOKING if pending.parallel_stop is not None or _only_looks(session, pending) else RUNNING


def _only_looks(session: Session, pending: PendingCall) -> bool:
    spec = pending.tool.spec
    has_effects = spec.side_effects or spec.category != "builtin"
    return not has_effects and pending.request is None and not session.skills.any


def prepare_parallel(session: Session, batch: list[PendingCall]) -> list[PendingCall]:
    """The calls that run in parallel now. Does what they cannot do then: waits in the queue, records starts in order.

    Plain reads record their start with their result, and run without the others: a command that runs finds names that a
    search then counts. Commands hold the queue until the first of them has its result, and all have run by then. Custom
    tools run without commands: a custom tool that calls handrail would wait for the queue forever.
    """

    def get_kind(pending: PendingCall) -> tuple[bool, bool]:
        return _only_looks(session, pending), pending.tool.spec.category == "custom"

    first = get_kind(batch[0])
    are_looks = first[0]
    batch = [*takewhile(lambda pending: get_kind(pending) == first, batch)]
    if are_looks or len(batch) < 2:
        return batch if len(batch) > 1 else []
    commands = [pending for pending in batch if pending.tool.spec.side_effects][:1]
    try:
        for pending in commands:
            take_steps(session, pending, (_wait_in_queue,))
        if not any(pending.error for pending in commands):
            for pending in batch:
                take_steps(session, pending, _PREPARING)
            return batch
    except DuplicateCallError:
        pass  # the call finds that out again in its turn
    for pending in commands:
        release_call(session, pending)
    return []


def _lock_path(session: Session, pending: PendingCall, lock: Lock, path: str) -> None:
    conflict = f"{path} is being changed by another session. Nothing was run. Try again."
    _lock(session, pending, lock, session.lock_seconds, conflict)


def _lock(
    session: Session, pending: PendingCall, lock: Lock, seconds: float, conflict: str, outcome: str = "Nothing was run."
) -> None:
    pending.releases.append(lock.release)
    is_cancelled = _build_cancel_check(session, pending)
    if not lock.take(seconds, is_cancelled):
        raise _build_cancelled_error(session, outcome) if is_cancelled() else ToolError("CONFLICT", conflict)


def _check_surroundings(session: Session, pending: PendingCall, request: PermissionRequest) -> None:
    """An approved command runs in the approved folder, with the approved variables and hosts, in no weaker sandbox."""
    command, process = pending.facts.command, pending.facts.process
    if process is not None and process.id != request.process:
        message = f"The approval was for the process session {request.process}, not for this one."
        raise ToolError("CONFLICT", f"{message} Nothing was written. Call again.")
    if command is None or request.tier is None or request.preview_id is not None:
        return  # a previewed command does not run again
    message = ""
    if command.tier < request.tier:
        message = f"The approval was for a sandbox of tier {request.tier}; now there is only tier {command.tier}."
    elif build_command_fact(session.workspace, command.cwd, "read").real != request.cwd:
        message = f"cwd {clip_path(command.cwd)} leads to another folder than at the request."
    elif set(command.hosts) != set(request.hosts):
        message = "The command would now reach other hosts than those in the approval."
    elif request.environment is not None and digest_environment(session) != request.environment:
        message = "The command would get other environment variables than at the request."
    if message:
        raise ToolError("CONFLICT", f"{message} Nothing was run. Call again.")


def digest_environment(session: Session) -> str:
    return hash_variables(session.commands.variables(session.workspace.roots))


# The context of a tool


def build_context(session: Session, pending: PendingCall) -> Context:
    is_command = pending.tool.context is CommandContext
    return build_command_context(session, pending) if is_command else _build_plain_context(session, pending)


def build_command_context(session: Session, pending: PendingCall) -> CommandContext:
    """The context of handrail's own command tools and of the tools of servers."""
    return CommandContext(
        **asdict(_build_plain_context(session, pending)),
        facts=pending.facts,
        answered=pending.answer is not None,
        report_connection=partial(_report_connection, session, pending),
        answer=pending.answer.kind if pending.answer is not None else None,
        preview_id=pending.preview_id,
        judge=partial(judge_call_changes, session, pending),
        needs_undo=partial(decide_without_undo, pending),
        exclusive=partial(_lock_roots, session, pending),
    )


def resolve_turn(session: Session, pending: PendingCall) -> str:
    """The turn that a call belongs to, also in a process that does not run the loop.

    A call that no model made is a turn of its own, with its batch.
    """
    call = pending.call
    prompt = session.journal.find_last("user") if call.message_id else None
    is_of_prompt = isinstance(prompt, events.User) and prompt.message_id == call.trace_id
    return call.trace_id if is_of_prompt else pending.batch_id


def _build_plain_context(session: Session, pending: PendingCall) -> Context:
    call = pending.call
    return Context(
        session_id=session.id,
        message_id=call.message_id,
        tool_call_id=call.tool_call_id,
        trace_id=call.trace_id,
        workspace=session.workspace,
        cancelled=_build_cancel_check(session, pending),
        limits=CallLimits(
            characters=pending.budget,
            restricted=session.rules.restriction is not None,
            offloads="read" in session.skills.offer.names,
            offline=is_network_closed(call.requested_permissions, session.rules),
            bulk=(pending.rules or session.rules).mode == "full",
            splits_streams=session.splits_streams or session.rules.restriction is not None,
        ),
        metadata=partial(_report_progress, session, pending),
    )


def _report_progress(
    session: Session, pending: PendingCall, /, title: str | None = None, output: str | None = None, **more: Any
) -> None:
    _mark_started(session, pending)
    if pending.journal_state == "started":  # a thread that the tool left behind may still report
        update = {"title": _to_text(title), "output": _to_text(output), "metadata": sanitize_json(more)[0] or None}
        session.journal.append((ToolCallUpdate, {**build_event_fields(pending), **update}))


def _report_connection(
    session: Session, pending: PendingCall, /, host: str, port: int, allowed: bool, reason: str
) -> None:
    if pending.journal_state == "started":  # as above
        fields = {"host": host, "port": port, "allowed": allowed, "reason": reason}
        session.journal.append((events.Network, {**fields, "tool_call_id": pending.call.tool_call_id}))


def _to_text(value: object) -> str | None:
    return None if value is None else escape_surrogates(str(value))


@contextlib.contextmanager
def _lock_roots(session: Session, pending: PendingCall) -> Generator[None]:
    """Keeps other sessions from changing files of the workspace."""
    conflict = "Another session has been changing files of the workspace for too long."
    conflict = f"{conflict} Nothing was changed. Call again."
    with contextlib.ExitStack() as held:
        for root in session.workspace.roots:
            if root.writable:
                lock = session.locks.of_root(root.path, alone=True)
                held.callback(lock.release)
                _lock(session, pending, lock, session.lock_seconds, conflict, "Nothing was changed.")
        yield


# Interrupts


def close_interrupted(session: Session, pending: PendingCall) -> None:
    """Records the result of a call that was interrupted at any point. A parked call stays parked."""
    try:
        if not _is_parked(session, pending):
            _close_interrupted(session, pending)
    finally:
        release_call(session, pending)


def _close_interrupted(session: Session, pending: PendingCall) -> None:
    with session.workspace.root_sets.lend(pending.roots):
        is_unclear = pending.journal_state == "started" and pending.output is None
        outcome = describe_interrupted(session, pending) if is_unclear else ""
    if pending.result is None and pending.output is not None:
        take_steps(session, pending, (results.build_result,))
    if pending.result is None:
        pending.fail(ToolError("CANCELLED", f"The call was interrupted. {outcome}" if outcome else _NOT_STARTED))
    if pending.journal_state != "finished":
        try:
            close_call(session, pending)
            return
        except DuplicateCallError:
            pass  # the result was recorded just before the interrupt, or the call is not ours
    results.restore_audit_record(session, pending)
    drop_preview(session, pending.preview_id)


def _is_parked(session: Session, pending: PendingCall) -> bool:
    """Looks up the state of the call, since the interrupt may have come before the state was set here.

    Under an id that handrail did not make, the journal may have another call.
    """
    entry = session.journal.entry(pending.call.tool_call_id)
    if entry is not None and pending.id_is_ours:
        pending.journal_state = entry.state
    return entry is not None and entry.state == "parked"


def release_call(session: Session, pending: PendingCall) -> None:
    """Frees what the call held. Each release may be called again, so an interrupt here leaves nothing locked."""
    try:
        session.workspace.drop_cached()
        for release in reversed(pending.releases):
            release()
    except BaseException:
        for release in reversed(pending.releases):
            release()
        raise
    pending.releases.clear()


def _build_cancel_check(session: Session, pending: PendingCall) -> Callable[[], bool]:
    """Whether the call was cancelled, alone or with the calls that run in parallel with it."""
    call_id, stop = pending.call.tool_call_id, pending.parallel_stop
    if stop is None:
        return partial(session.is_cancelled, call_id)
    return lambda: session.is_cancelled(call_id) or stop.is_set()


def _build_cancelled_error(session: Session, outcome: str = "Nothing was run.") -> ToolError:
    cancelled = "session" if session.cancelled.is_set() else "call"
    return ToolError("CANCELLED", f"The {cancelled} was cancelled. {outcome}")


def _describe_progress(session: Session, pending: PendingCall) -> str:
    """How far a call came whose record failed."""
    if pending.journal_state is None:
        return "Nothing was run." if pending.output is None else "Nothing was changed."
    if pending.output is not None or pending.result is not None:
        return "The call ran, but its result was not recorded: check before you repeat it."
    with contextlib.suppress(StoreError):
        return describe_interrupted(session, pending)
    return "Its effects are unknown. Check before you repeat it."
