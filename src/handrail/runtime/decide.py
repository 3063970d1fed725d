"""The steps of a call."""

import contextlib
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from handrail.policy.config import MCP_PREFIX, PolicyConfig
from handrail.policy.decide import decide, is_network_closed
from handrail.policy.verdict import SKILL, may_open_outside
from handrail.protocol import events
from handrail.protocol.arguments import build_argument_error, validate
from handrail.protocol.changes import Change
from handrail.protocol.decisions import Access, Decision, Facts, MemoryFact, PathFact
from handrail.protocol.errors import ErrorCode, Problem, ToolError
from handrail.protocol.events import ToolCallRunning, ToolCallUpdate
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.tool_spec import SideEffect, ToolSpec, parse_major_version
from handrail.protocol.wire import escape_surrogates, sanitize_json
from handrail.runtime.locks import Lock
from handrail.runtime.pending_call import find_preview_id
from handrail.runtime.registry import find_nearest_name
from handrail.runtime.results import build_event_fields, record_state
from handrail.runtime.session import PendingCall, Session
from handrail.tools.tool import CallLimits, CommandContext, CommandUse, Context, ProcessUse, Touches
from handrail.workspace.errors import clip_path
from handrail.workspace.facts import build_command_fact, build_path_fact
from handrail.workspace.workspace import Workspace

_MAX_LOCKED_FILES = 100
"""Files that are locked one by one."""
_ONLY_SAID: frozenset[SideEffect] = frozenset(("conversation",))

# Deciding


def find_tool(session: Session, pending: PendingCall) -> None:
    """Exactly the name that was called, or nothing runs."""
    name = pending.call.name
    session.skills.refresh()
    if session.foreign is not None and name.startswith(MCP_PREFIX):
        session.look_at_servers()
    tool = session.skills.offer.get(name)
    if tool is None and session.repair == "case":
        tool = session.offer.differing_in_case(name)
        if tool is not None:
            warn(pending, "UNKNOWN_TOOL", f"{escape_surrogates(name)[:80]} was taken for {tool.spec.name}.")
    if tool is None:
        raise _unknown(session, pending)
    pending.tool = tool
    if tool.spec.foreign is not None:
        _check_description(pending)


def _unknown(session: Session, pending: PendingCall) -> ToolError:
    session.look_at_servers()
    names = session.offer.names
    message = f"Unknown Agent tool: {escape_surrogates(pending.call.name)[:200]}"
    if session.foreign is not None and (why := session.foreign.why_gone(pending.call.name)):
        message = f"{message} ({why})"
    warn(pending, "UNKNOWN_TOOL", message)
    near = find_nearest_name(pending.call.name, names)
    return ToolError("UNKNOWN_TOOL", message, details=list(names), warnings=(f"Did you mean {near}?",) if near else ())


def check_version(_: Session, pending: PendingCall) -> None:
    """Another major version means another schema: said, not guessed."""
    asked = pending.call.version
    if asked is None:
        return
    spec = pending.tool.spec
    if parse_major_version(asked) is None:
        raise ToolError(
            "INVALID_ARGUMENT", f"version {escape_surrogates(asked)[:40]!r} is none; the current one is {spec.version}."
        )
    if parse_major_version(asked) != parse_major_version(spec.version):
        message = (
            f"{spec.name} is version {spec.version}; {asked[:40]} has another schema or meaning. Leave version out."
        )
        raise ToolError("UNSUPPORTED_VERSION", message, details={"current": spec.version, "asked": asked[:40]})


def check_arguments(_: Session, pending: PendingCall) -> None:
    """Every problem of the arguments at once, before policy and before any effect."""
    spec = pending.tool.spec
    pending.arguments = validate(spec, pending.call.args)
    if not pending.args_are_json:
        problem = "the arguments hold text that is not valid Unicode, or a value that is not JSON"
        raise build_argument_error(spec, (Problem(field="", problem=problem),))


def gather_facts(session: Session, pending: PendingCall) -> None:
    """What the world is, as far as the decision may depend on it."""
    session.opened_roots.refresh()
    touched = pending.tool.touches(pending.arguments)
    if touched.process is not None:
        pending.facts = _facts_of_process(session, touched.process)
    elif touched.command is None:
        pending.facts = collect_touched_facts(session.workspace, touched)
    else:
        pending.facts = _facts_of_command(session, touched.command)
    if session.skills.any and (narrowed := session.skills.narrowing(pending.tool.spec.name)) is not None:
        pending.facts = replace(pending.facts, narrowed=narrowed)


def _facts_of_command(session: Session, command: CommandUse) -> Facts:
    from handrail.runtime.facts import collect_command_facts  # noqa: PLC0415  tables that only commands need

    return collect_command_facts(
        session.workspace,
        command.text,
        command.cwd,
        background=command.background,
        yields=command.yields,
        tier=session.commands.find_tier(session.workspace.roots, background=command.background),
        host=lambda: session.commands.host,
    )


def _facts_of_process(session: Session, use: ProcessUse) -> Facts:
    from handrail.runtime.facts import collect_process_facts  # noqa: PLC0415  as above

    return collect_process_facts(use, lambda: session.background.sessions, lambda: session.commands.tier)


def collect_touched_facts(workspace: Workspace, touched: Touches) -> Facts:
    """What the paths that a call declares are now."""
    locate_error = touched.locate_error
    look = partial(_told_fact, workspace, locate_error) if locate_error else partial(build_path_fact, workspace)
    paths = [look(path, "read") for path in touched.reads]
    if touched.writes or touched.deletes:
        paths += [look(path, "write") for path in touched.writes]
        paths += [look(path, "delete") for path in touched.deletes]
    use = touched.memory
    memory = MemoryFact(action=use.action, note=use.note) if use is not None else None
    return Facts(paths=tuple(paths), memory=memory, foreign=touched.foreign)


def _told_fact(
    workspace: Workspace, told: Callable[[ToolError, str], ToolError], path: str, access: Access
) -> PathFact:
    try:
        return build_path_fact(workspace, path, access)
    except ToolError as error:
        raise told(error, path) from None


def decide_call(session: Session, pending: PendingCall) -> None:
    """Asks policy. A refusal is an error of the result; a question is left to the latch."""
    requested = pending.call.requested_permissions
    rules = session.rules
    may_be_granted = pending.facts.command is not None or pending.facts.foreign is not None
    if may_be_granted and (grants := session.grants.current()):
        rules = replace(rules, grants=grants)
    if pending.answer is not None:
        # Somebody was there to ask, whoever carries it out. What is outside even so leads elsewhere by now.
        rules = replace(rules, unattended=False, outside="deny")
    pending.rules = rules
    decision = pending.decision = decide(pending.tool.spec, requested, pending.facts, rules)
    if decision.decision == "deny":
        raise _refused(pending, decision)
    if decision.decision == "confirm":
        _refuse_no_network(pending)


def _refused(pending: PendingCall, decision: Decision) -> ToolError:
    code = decision.code or "POLICY_DENIED"
    warn(pending, code, f"{pending.name} was refused by {decision.rule}: {decision.reason}.")
    message = _refusal(pending, decision, code)
    return ToolError(code, message, details={"rule": decision.rule, "reason": decision.reason})


def _refuse_no_network(pending: PendingCall) -> None:
    """Nobody is asked to open what cannot be opened here."""
    command = pending.facts.command
    if command is not None and command.hosts and command.tier == 1:
        hosts = ", ".join(command.hosts[:3])
        text = f"It needs {hosts}, and the network is opened only in sandbox tier 2; here is tier 1. Nothing was run."
        raise ToolError("UNAVAILABLE", f"{text} Go on without it; `handrail doctor` tells a person more.")


_ASK_A_PERSON = "Ask the person if you need it."
_GERUNDS: dict[str, str] = {"read": "reading", "write": "writing", "delete": "deleting"}


def _doing(pending: PendingCall, subject: str) -> str:
    """What the call would do to the subject, in a word."""
    if pending.facts.foreign is not None:
        return "calling"
    access = next((fact.access for fact in pending.facts.paths if fact.path == subject), None)
    return _GERUNDS[access] if access else pending.name


def _refusal(pending: PendingCall, decision: Decision, code: ErrorCode) -> str:
    subject, doing = clip_path(decision.subject), _doing(pending, decision.subject)
    if code == "OUTSIDE_WORKSPACE":
        why = _find_closed_reason(pending, decision.subject)
        return f"{subject} is outside the workspace{why and '; '}{why}. Paths are relative to it. {_ASK_A_PERSON}"
    if code == "PERMISSION_DENIED":
        return f"{doing} {subject} needs a person's yes: {decision.reason}. Nothing ran. Do not repeat this call."
    forbidden = f"Rule {decision.rule} forbids {doing} {subject}: {decision.reason}."
    if decision.rule.startswith(SKILL):
        return f"{forbidden} Nothing ran. Do it with what is named, or deactivate the skill when its task is done."
    return f"{forbidden} Do not try another way; say what you need it for."


def _find_closed_reason(pending: PendingCall, path: str) -> str:
    rules = pending.rules
    facts = (fact for fact in pending.facts.paths if rules is not None and may_open_outside(fact, rules))
    return next((fact.closed_reason for fact in facts if fact.path == path), "")


# Running


def wait_in_queue(session: Session, pending: PendingCall) -> None:
    """Calls with effects run one at a time in a session, in whatever process they come from."""
    if not pending.tool.spec.side_effects:
        return
    held_up = "Another call of this session is still running. Nothing was run. Try again later."
    if session.queue.held_here:  # a tool called a tool: waiting for itself, it would wait for ever
        raise ToolError("CONFLICT", held_up)
    pending.releases.append(session.queue.leave)
    if not session.queue.enter(_ending(session, pending)):
        raise _cancelled(session)
    _lock(session, pending, session.locks.of(f"session:{session.folder}"), session.queue_seconds, held_up)


def check_skills(session: Session, pending: PendingCall) -> None:
    """What a call before it in its batch activated speaks of it too."""
    if not session.skills.any:
        return
    spec, narrowed = pending.tool.spec, session.skills.narrowing(pending.tool.spec.name)
    if session.offer.get(spec.name) is None and session.offer.get_registered(spec.name) is not None:
        raise _unknown(session, pending)
    if narrowed is None or narrowed == pending.facts.narrowed or pending.rules is None:
        return
    pending.facts = replace(pending.facts, narrowed=narrowed)
    decision = decide(spec, pending.call.requested_permissions, pending.facts, pending.rules)
    if decision.decision == "deny":
        pending.outcome_decision = decision
        raise _refused(pending, decision)


def take_locks(session: Session, pending: PendingCall) -> None:
    """Holds every file the call will change, against other sessions; always in the same order. Of very many files it
    holds the roots they are in instead, alone: a process has only so many descriptors."""
    if not pending.tool.spec.side_effects or _takes_its_own_locks(pending):
        return
    changed = sorted({fact.real for fact in pending.facts.paths if fact.access != "read" and fact.real is not None})
    many = len(changed) > _MAX_LOCKED_FILES
    for root in sorted({session.workspace.root_path(real) for real in changed}):
        _lock(session, pending, session.locks.of_root(root, alone=many), session.lock_seconds, _held_up(root))
    if many:
        return
    for real in changed:
        resource = f"file:{session.workspace.main.path}/{real}" if not real.startswith("/") else f"file:{real}"
        _lock(session, pending, session.locks.of(resource), session.lock_seconds, _held_up(real))
    # A file with several names is one file: whoever comes by another name waits too.
    shared = {session.workspace.shared_file(real): real for real in changed}
    for identity, real in sorted((identity, real) for identity, real in shared.items() if identity is not None):
        _lock(session, pending, session.locks.of(f"inode:{identity}"), session.lock_seconds, _held_up(real))


def _takes_its_own_locks(pending: PendingCall) -> bool:
    """What it changes goes into an overlay: only the commit needs the files. Without one, it runs with nobody else at
    work: whole roots are held then."""
    command = pending.facts.command
    return command is not None and not command.outlives


def _held_up(real: str) -> str:
    return f"{real} is being changed by another session. Nothing was run. Try again."


def _lock(session: Session, pending: PendingCall, lock: Lock, seconds: float, held_up: str) -> None:
    pending.releases.append(lock.release)
    ending = _ending(session, pending)
    if not lock.take(seconds, ending):
        raise _cancelled(session) if ending() else ToolError("CONFLICT", held_up)


def check_bound_files(session: Session, pending: PendingCall) -> None:
    """A yes counts only while the paths lead where they led, and the files are what they were, when it was asked."""
    if pending.tool.spec.foreign is not None:
        _check_server(session, pending)
    if pending.request is not None:
        _check_surroundings(session, pending, pending.request)
    if not pending.bound_files:
        return
    leads = {fact.path: fact.real for fact in pending.facts.paths}
    for basis in pending.bound_files:
        real = (
            leads[basis.path] if basis.path in leads else build_command_fact(session.workspace, basis.path, "read").real
        )
        if real != basis.real or session.workspace.hash_of(basis.path) != basis.hash:
            raise ToolError("CONFLICT", _outdated(pending, clip_path(basis.path)))


def _check_server(session: Session, pending: PendingCall) -> None:
    """What another server lists now, at the last moment: a call is for the tool that it was decided about."""
    decided = pending.tool
    session.look_at_servers()
    tool = session.offer.get(decided.spec.name)
    if tool is None:
        raise _unknown(session, pending)
    pending.tool = tool
    _check_description(pending, decided.spec)
    if pending.answer is not None and session.foreign is not None:
        session.foreign.approve(tool.spec)


def _check_description(pending: PendingCall, decided: ToolSpec | None = None) -> None:
    """A yes is to the tool as its server described it then; so is a decision."""
    foreign = pending.tool.spec.foreign
    if foreign is None:
        return
    before = {decided.foreign.fingerprint} if decided is not None and decided.foreign is not None else set[str]()
    before |= (
        {pending.request.fingerprint} if pending.request is not None and pending.request.fingerprint else set[str]()
    )
    if before - {foreign.fingerprint}:
        told = f"{pending.tool.spec.server} describes {pending.name} otherwise than when this call was decided about"
        raise ToolError("CONFLICT", f"{told}. Nothing was run. Call again.")


def _outdated(pending: PendingCall, path: str) -> str:
    if pending.facts.command is not None:  # which was not tried: there is no preview
        return f"{path} is another now than when the person was asked. Nothing was run. Call again."
    return f"The preview was out of date: {path} changed. Nothing was kept. Call again."


def _check_surroundings(session: Session, pending: PendingCall, asked: PermissionRequest) -> None:
    """A yes to a command is for the folder it was to run in, the variables and hosts it was to have, and for no weaker
    sandbox."""
    command, process = pending.facts.command, pending.facts.process
    if process is not None and process.id != asked.process:
        message = f"The person was asked about the process session {asked.process}, and this is another one."
        raise ToolError("CONFLICT", f"{message} Nothing was written. Call again.")
    if command is None or asked.tier is None or find_preview_id(asked) is not None:
        return  # what was tried is not run again
    message = ""
    if command.tier < asked.tier:
        message = f"The person was asked about a sandbox of tier {asked.tier}; now there is only tier {command.tier}."
    elif build_command_fact(session.workspace, command.cwd, "read").real != asked.cwd:
        message = f"cwd {clip_path(command.cwd)} leads to another folder now than when the person was asked."
    elif set(command.hosts) != set(asked.hosts):
        message = "The command would reach other hosts now than those that the person was asked about."
    elif asked.environment is not None and digest_environment(session) != asked.environment:
        message = "The command would get other environment variables here and now than when the person was asked."
    if message:
        raise ToolError("CONFLICT", f"{message} Nothing was run. Call again.")


def digest_environment(session: Session) -> str:
    """A digest of the variables that a command would get now."""
    from handrail.store.grants import hash_variables  # noqa: PLC0415  only where somebody is asked

    return hash_variables(session.commands.variables(session.workspace.roots))


def write_started(session: Session, pending: PendingCall) -> None:
    """The journal knows of a call with effects before the first of them; of a tool we did not write we never know.
    What is only said is written with the result."""
    spec = pending.tool.spec
    if spec.category != "builtin" or not _ONLY_SAID.issuperset(spec.side_effects):
        mark_started(session, pending)


def mark_started(session: Session, pending: PendingCall) -> None:
    """Writes the call down as started, unless it is, or is over."""
    if pending.journal_state in {"started", "finished"}:
        return
    record_state(session, pending, "started", (ToolCallRunning, build_event_fields(pending)))
    session.journal.deliver()


def run_tool(session: Session, pending: PendingCall) -> None:
    """Does it."""
    tool = pending.tool
    if session.is_cancelled(pending.call.tool_call_id):
        raise _cancelled(session)
    if tool.spec.side_effects:
        session.recorder.turn = session.turn or resolve_turn(session, pending)
    pending.output = tool.run(build_context(session, pending), pending.arguments)


def resolve_turn(session: Session, pending: PendingCall) -> str:
    """The turn that a call belongs to, also where another process than the loop's makes it: somebody said yes there.
    A call that no model made is a turn of its own, with its batch."""
    call = pending.call
    begun = session.journal.last_of("user") if call.message_id else None
    return call.trace_id if isinstance(begun, events.User) and begun.message_id == call.trace_id else pending.batch_id


def build_context(session: Session, pending: PendingCall) -> Context:
    """What the tool gets to know about its call."""
    if pending.tool.context is CommandContext:
        return build_command_context(session, pending)
    return Context(**_of_call(session, pending))


def build_command_context(session: Session, pending: PendingCall) -> CommandContext:
    """The same for handrail's own tools for commands, and those of servers."""
    return CommandContext(
        **_of_call(session, pending),
        facts=pending.facts,
        answered=pending.answer is not None,
        report_connection=partial(_tell_attempt, session, pending),
        answer=pending.answer.kind if pending.answer is not None else None,
        preview_id=find_preview_id(pending.request) if pending.request is not None else None,
        judge=partial(judge_call_changes, session, pending),
        needs_undo=partial(_needs_undo, pending),
        exclusive=partial(_alone, session, pending),
    )


def _of_call(session: Session, pending: PendingCall) -> dict[str, Any]:
    """Partial: functions within this one would be made anew at every call, which costs twice as much."""
    call = pending.call
    return {
        "session_id": session.id,
        "message_id": call.message_id,
        "tool_call_id": call.tool_call_id,
        "trace_id": call.trace_id,
        "workspace": session.workspace,
        "cancelled": _ending(session, pending),
        "limits": CallLimits(
            characters=pending.budget,
            restricted=session.rules.restriction is not None,
            offloads="read" in session.skills.offer.names,
            offline=is_network_closed(call.requested_permissions, session.rules),
            bulk=(pending.rules or session.rules).mode == "full",
        ),
        "metadata": partial(_tell, session, pending),
    }


def _tell(
    session: Session, pending: PendingCall, /, title: str | None = None, output: str | None = None, **more: Any
) -> None:
    mark_started(session, pending)
    if pending.journal_state == "started":  # a thread that the tool left behind may still talk
        update = {"title": _text(title), "output": _text(output), "metadata": sanitize_json(more)[0] or None}
        session.journal.append((ToolCallUpdate, {**build_event_fields(pending), **update}))


def _tell_attempt(session: Session, pending: PendingCall, /, host: str, port: int, allowed: bool, reason: str) -> None:
    if pending.journal_state == "started":  # as above
        told = {"host": host, "port": port, "allowed": allowed, "reason": reason}
        session.journal.append((events.Network, {**told, "tool_call_id": pending.call.tool_call_id}))


def _ending(session: Session, pending: PendingCall) -> Callable[[], bool]:
    """Tells whether a call is to end; one beside others ends with them too."""
    call_id, stopped = pending.call.tool_call_id, pending.parallel_stop
    if stopped is None:
        return partial(session.is_cancelled, call_id)
    return lambda: session.is_cancelled(call_id) or stopped.is_set()


def _was_tried(pending: PendingCall) -> bool:
    return pending.request is not None and find_preview_id(pending.request) is not None


def judge_call_changes(
    session: Session, pending: PendingCall, changes: tuple[Change, ...], configs: Mapping[str, str]
) -> Decision:
    """What policy says of what a command changed in its overlay."""
    from handrail.policy.changeset import judge_changes  # noqa: PLC0415  few commands change something
    from handrail.runtime.facts import list_steering_paths  # noqa: PLC0415  as above

    rules = pending.rules
    if rules is None:
        raise AssertionError("a command was judged before it ran")
    spoken_for = _is_spoken_for(pending, rules)
    decision = judge_changes(
        changes,
        rules,
        undo=True,
        spoken_for=spoken_for,
        configs=configs,
        tool=pending.name,
        steering=list_steering_paths(session.workspace, changes),
    )
    if decision.decision == "deny" or (decision.decision == "confirm" and not _was_tried(pending)):
        pending.outcome_decision = decision  # what asks of a result that somebody saw has its answer
    if decision.decision == "deny":
        warn(pending, decision.code or "POLICY_DENIED", f"What {pending.name} changed was refused by {decision.rule}.")
    return decision


def _is_spoken_for(pending: PendingCall, rules: PolicyConfig) -> bool:
    """Whether a person, a rule or a grant allowed the call: the mode by itself would not have."""
    if pending.answer is not None:
        return True
    by_mode = replace(rules, rules=(), grants=())
    return decide(pending.tool.spec, pending.call.requested_permissions, pending.facts, by_mode).decision != "allow"


def _needs_undo(pending: PendingCall) -> Decision | None:
    """What policy would say if undo did not cover what it changes; None where that would make no difference."""
    command, rules = pending.facts.command, pending.rules
    if command is None or rules is None or pending.answer is not None:
        return None
    facts = replace(pending.facts, command=replace(command, tier=min(command.tier, 2), snapshot=False))
    decision = decide(pending.tool.spec, pending.call.requested_permissions, facts, rules)
    return decision if decision.decision != "allow" else None


@contextlib.contextmanager
def _alone(session: Session, pending: PendingCall) -> Generator[None]:
    ending = _ending(session, pending)
    locks = [session.locks.of_root(root.path, alone=True) for root in session.workspace.roots if root.writable]
    with contextlib.ExitStack() as held:
        for lock in locks:
            held.callback(lock.release)
            if not lock.take(session.lock_seconds, ending):
                raise _not_kept(session, cancelled=ending())
        yield


def _not_kept(session: Session, *, cancelled: bool) -> ToolError:
    if cancelled:
        return ToolError("CANCELLED", f"The {_what_ended(session)} was cancelled. Nothing was changed.")
    message = "Another session is changing files of the workspace, and does not come to an end."
    return ToolError("CONFLICT", f"{message} Nothing was changed. Call again.")


def _text(value: object) -> str | None:
    return None if value is None else escape_surrogates(str(value))


def _cancelled(session: Session) -> ToolError:
    return ToolError("CANCELLED", f"The {_what_ended(session)} was cancelled. Nothing was run.")


def _what_ended(session: Session) -> str:
    return "session" if session.cancelled.is_set() else "call"


def warn(pending: PendingCall, code: str, text: str) -> None:
    """A warning event that goes with the call."""
    pending.pending_events.append(
        (events.Warning, {"code": code, "text": text, "tool_call_id": pending.call.tool_call_id})
    )
