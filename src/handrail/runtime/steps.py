"""The steps of a call, in the order they are taken. Each is one function; pipeline.py strings them together."""

import contextlib
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from handrail.policy.judging.judged import SKILL
from handrail.policy.permissions import is_network_closed
from handrail.policy.rules.foreign_names import FOREIGN
from handrail.policy.verdict import Rules, decide
from handrail.protocol import event
from handrail.protocol.arguments import Problem, checked, invalid
from handrail.protocol.change import Change
from handrail.protocol.decision import Access, Decision, Facts, MemoryFact, PathFact
from handrail.protocol.error import ErrorCode, ToolError
from handrail.protocol.event import ToolCallRunning, ToolCallUpdate
from handrail.protocol.permission import PermissionRequest
from handrail.protocol.plain import plain, readable
from handrail.protocol.tool import SideEffect, ToolSpec, major
from handrail.runtime.closing import named, write_down
from handrail.runtime.locks import Lock
from handrail.runtime.registry import nearest
from handrail.runtime.session import Flight, Session
from handrail.runtime.waiting_trials import sealed_in
from handrail.tools.contract import Command, CommandContext, Context, Limits, ProcessUse, Touched
from handrail.workspace.errors import clipped
from handrail.workspace.workspace import Workspace

_MANY = 100
"""Files that are locked one by one."""
_ONLY_SAID: frozenset[SideEffect] = frozenset(("conversation",))

# Deciding


def find_tool(session: Session, flight: Flight) -> None:
    """Exactly the name that was called, or nothing runs."""
    name = flight.call.name
    session.skills.refresh()
    if session.others is not None and name.startswith(FOREIGN):
        session.look_at_servers()
    tool = session.skills.offer.get(name)
    if tool is None and session.repair == "case":
        tool = session.offer.differing_in_case(name)
        if tool is not None:
            warn(flight, "UNKNOWN_TOOL", f"{readable(name)[:80]} was taken for {tool.spec.name}.")
    if tool is None:
        raise _unknown(session, flight)
    flight.tool = tool
    if tool.spec.foreign is not None:
        _check_description(flight)


def _unknown(session: Session, flight: Flight) -> ToolError:
    session.look_at_servers()
    names = session.offer.names
    message = f"Unknown Agent tool: {readable(flight.call.name)[:200]}"
    if session.others is not None and (why := session.others.why_gone(flight.call.name)):
        message = f"{message} ({why})"
    warn(flight, "UNKNOWN_TOOL", message)
    near = nearest(flight.call.name, names)
    return ToolError("UNKNOWN_TOOL", message, details=list(names), warnings=(f"Did you mean {near}?",) if near else ())


def check_version(_: Session, flight: Flight) -> None:
    """Another major version means another schema: said, not guessed."""
    asked = flight.call.version
    if asked is None:
        return
    spec = flight.tool.spec
    if major(asked) is None:
        raise ToolError(
            "INVALID_ARGUMENT", f"version {readable(asked)[:40]!r} is none; the current one is {spec.version}."
        )
    if major(asked) != major(spec.version):
        message = (
            f"{spec.name} is version {spec.version}; {asked[:40]} has another schema or meaning. Leave version out."
        )
        raise ToolError("UNSUPPORTED_VERSION", message, details={"current": spec.version, "asked": asked[:40]})


def check_arguments(_: Session, flight: Flight) -> None:
    """Every problem of the arguments at once, before policy and before any effect."""
    spec = flight.tool.spec
    flight.arguments = checked(spec, flight.call.args)
    if not flight.args_are_json:
        problem = "the arguments hold text that is not valid Unicode, or a value that is not JSON"
        raise invalid(spec, (Problem(field="", problem=problem),))


def gather_facts(session: Session, flight: Flight) -> None:
    """What the world is, as far as the decision may depend on it."""
    session.outside.refresh()
    touched = flight.tool.touches(flight.arguments)
    if touched.process is not None:
        flight.facts = _facts_of_process(session, touched.process)
    elif touched.command is None:
        flight.facts = touched_facts(session.workspace, touched)
    else:
        flight.facts = _facts_of_command(session, touched.command)
    if session.skills.any and (narrowed := session.skills.narrowing(flight.tool.spec.name)) is not None:
        flight.facts = replace(flight.facts, narrowed=narrowed)


def _facts_of_command(session: Session, command: Command) -> Facts:
    from handrail.runtime.command_facts import command_facts  # noqa: PLC0415  tables that only commands need

    return command_facts(
        session.workspace,
        command.text,
        command.cwd,
        background=command.background,
        yields=command.yields,
        tier=session.commands.tier_over(session.workspace.roots, background=command.background),
    )


def _facts_of_process(session: Session, use: ProcessUse) -> Facts:
    from handrail.runtime.process_facts import process_facts  # noqa: PLC0415  as above

    return process_facts(use, lambda: session.background.sessions, lambda: session.commands.tier)


def touched_facts(workspace: Workspace, touched: Touched) -> Facts:
    """What the paths that a call declares are now."""
    look = workspace.fact if touched.told is None else partial(_told_fact, workspace, touched.told)
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
        return workspace.fact(path, access)
    except ToolError as error:
        raise told(error, path) from None


def decide_call(session: Session, flight: Flight) -> None:
    """Asks policy. A refusal is an error of the result; a question is left to the latch."""
    requested = flight.call.requested_permissions
    rules = session.rules
    may_be_granted = flight.facts.command is not None or flight.facts.foreign is not None
    if may_be_granted and (grants := session.grants.current()):
        rules = replace(rules, grants=grants)
    if flight.answer is not None:
        # Somebody was there to ask, whoever carries it out. What is outside even so leads elsewhere by now.
        rules = replace(rules, unattended=False, outside="deny")
    flight.rules = rules
    decision = flight.decision = decide(flight.tool.spec, requested, flight.facts, rules)
    if decision.decision == "deny":
        raise _refused(flight, decision)
    if decision.decision == "confirm":
        _refuse_no_network(flight)


def _refused(flight: Flight, decision: Decision) -> ToolError:
    code = decision.code or "POLICY_DENIED"
    warn(flight, code, f"{flight.name} was refused by {decision.rule}: {decision.reason}.")
    message = _refusal(decision, code, _doing(flight, decision.subject))
    return ToolError(code, message, details={"rule": decision.rule, "reason": decision.reason})


def _refuse_no_network(flight: Flight) -> None:
    """Nobody is asked to open what cannot be opened here."""
    command = flight.facts.command
    if command is not None and command.hosts and command.tier == 1:
        hosts = ", ".join(command.hosts[:3])
        text = f"It needs {hosts}, and the network is opened only in sandbox tier 2; here is tier 1. Nothing was run."
        raise ToolError("UNAVAILABLE", f"{text} Go on without it; `handrail doctor` tells a person more.")


_ASK_A_PERSON = "Ask the person if you need it."
_GERUNDS: dict[str, str] = {"read": "reading", "write": "writing", "delete": "deleting"}


def _doing(flight: Flight, subject: str) -> str:
    """What the call would do to the subject, in a word."""
    if flight.facts.foreign is not None:
        return "calling"
    access = next((fact.access for fact in flight.facts.paths if fact.path == subject), None)
    return _GERUNDS[access] if access else flight.name


def _refusal(decision: Decision, code: ErrorCode, doing: str) -> str:
    subject = clipped(decision.subject)
    if code == "OUTSIDE_WORKSPACE":
        why = decision.reason.partition(";")[2]
        return f"{subject} is outside the workspace{why and ';'}{why}. Paths are relative to it. {_ASK_A_PERSON}"
    if code == "PERMISSION_DENIED":
        return f"{doing} {subject} needs a person's yes: {decision.reason}. Nothing ran. Do not repeat this call."
    forbidden = f"Rule {decision.rule} forbids {doing} {subject}: {decision.reason}."
    if decision.rule.startswith(SKILL):
        return f"{forbidden} Nothing ran. Do it with what is named, or deactivate the skill when its task is done."
    return f"{forbidden} Do not try another way; say what you need it for."


# Running


def wait_in_queue(session: Session, flight: Flight) -> None:
    """Calls with effects run one at a time in a session, in whatever process they come from."""
    if not flight.tool.spec.side_effects:
        return
    held_up = "Another call of this session is still running. Nothing was run. Try again later."
    if session.turns.mine:  # a tool called a tool: waiting for itself, it would wait for ever
        raise ToolError("CONFLICT", held_up)
    flight.held.append(session.turns.leave)
    if not session.turns.take(_ending(session, flight)):
        raise _cancelled(session)
    _lock(session, flight, session.locks.of(f"session:{session.folder}"), session.queue_seconds, held_up)


def check_skills(session: Session, flight: Flight) -> None:
    """What a call before it in its batch activated speaks of it too."""
    if not session.skills.any:
        return
    spec, narrowed = flight.tool.spec, session.skills.narrowing(flight.tool.spec.name)
    if session.offer.get(spec.name) is None and session.offer.known(spec.name) is not None:
        raise _unknown(session, flight)
    if narrowed is None or narrowed == flight.facts.narrowed or flight.rules is None:
        return
    flight.facts = replace(flight.facts, narrowed=narrowed)
    decision = decide(spec, flight.call.requested_permissions, flight.facts, flight.rules)
    if decision.decision == "deny":
        flight.judged = decision
        raise _refused(flight, decision)


def take_locks(session: Session, flight: Flight) -> None:
    """Holds every file the call will change, against other sessions; always in the same order. Of very many files it
    holds the roots they are in instead, alone: a process has only so many descriptors."""
    if not flight.tool.spec.side_effects or _takes_its_own_locks(flight):
        return
    changed = sorted({fact.real for fact in flight.facts.paths if fact.access != "read" and fact.real is not None})
    many = len(changed) > _MANY
    for root in sorted({session.workspace.root_path(real) for real in changed}):
        _lock(session, flight, session.locks.of_root(root, alone=many), session.lock_seconds, _held_up(root))
    if many:
        return
    for real in changed:
        resource = f"file:{session.workspace.main.path}/{real}" if not real.startswith("/") else f"file:{real}"
        _lock(session, flight, session.locks.of(resource), session.lock_seconds, _held_up(real))
    # A file with several names is one file: whoever comes by another name waits too.
    shared = {session.workspace.shared_file(real): real for real in changed}
    for identity, real in sorted((identity, real) for identity, real in shared.items() if identity is not None):
        _lock(session, flight, session.locks.of(f"inode:{identity}"), session.lock_seconds, _held_up(real))


def _takes_its_own_locks(flight: Flight) -> bool:
    """What it changes goes into a layer: only keeping that needs the files. Without one, it runs with nobody else at
    work: whole roots are held then."""
    command = flight.facts.command
    return command is not None and not command.outlives


def _held_up(real: str) -> str:
    return f"{real} is being changed by another session. Nothing was run. Try again."


def _lock(session: Session, flight: Flight, lock: Lock, seconds: float, held_up: str) -> None:
    flight.held.append(lock.release)
    ending = _ending(session, flight)
    if not lock.take(seconds, ending):
        raise _cancelled(session) if ending() else ToolError("CONFLICT", held_up)


def check_basis(session: Session, flight: Flight) -> None:
    """A yes counts only while the paths lead where they led, and the files are what they were, when it was asked."""
    if flight.tool.spec.foreign is not None:
        _check_server(session, flight)
    if flight.asked is not None:
        _check_surroundings(session, flight, flight.asked)
    if not flight.based_on:
        return
    leads = {fact.path: fact.real for fact in flight.facts.paths}
    for basis in flight.based_on:
        real = leads[basis.path] if basis.path in leads else session.workspace.look(basis.path, "read").real
        if real != basis.real or session.workspace.hash_of(basis.path) != basis.hash:
            raise ToolError("CONFLICT", _outdated(flight, clipped(basis.path)))


def _check_server(session: Session, flight: Flight) -> None:
    """What another server lists now, at the last moment: a call is for the tool that it was decided about."""
    decided = flight.tool
    session.look_at_servers()
    tool = session.offer.get(decided.spec.name)
    if tool is None:
        raise _unknown(session, flight)
    flight.tool = tool
    _check_description(flight, decided.spec)
    if flight.answer is not None and session.others is not None:
        session.others.approve(tool.spec)


def _check_description(flight: Flight, decided: ToolSpec | None = None) -> None:
    """A yes is to the tool as its server described it then; so is a decision."""
    foreign = flight.tool.spec.foreign
    if foreign is None:
        return
    before = {decided.foreign.fingerprint} if decided is not None and decided.foreign is not None else set[str]()
    before |= {flight.asked.fingerprint} if flight.asked is not None and flight.asked.fingerprint else set[str]()
    if before - {foreign.fingerprint}:
        told = f"{flight.tool.spec.server} describes {flight.name} otherwise than when this call was decided about"
        raise ToolError("CONFLICT", f"{told}. Nothing was run. Call again.")


def _outdated(flight: Flight, path: str) -> str:
    if flight.facts.command is not None:  # which was not tried: there is no preview
        return f"{path} is another now than when the person was asked. Nothing was run. Call again."
    return f"The preview was out of date: {path} changed. Nothing was kept. Call again."


def _check_surroundings(session: Session, flight: Flight, asked: PermissionRequest) -> None:
    """A yes to a command is for the folder it was to run in, the variables and hosts it was to have, and for no weaker
    sandbox."""
    command, process = flight.facts.command, flight.facts.process
    if process is not None and process.id != asked.process:
        message = f"The person was asked about the process session {asked.process}, and this is another one."
        raise ToolError("CONFLICT", f"{message} Nothing was written. Call again.")
    if command is None or asked.tier is None or sealed_in(asked) is not None:
        return  # what was tried is not run again
    message = ""
    if command.tier < asked.tier:
        message = f"The person was asked about a sandbox of tier {asked.tier}; now there is only tier {command.tier}."
    elif session.workspace.look(command.cwd, "read").real != asked.cwd:
        message = f"cwd {clipped(command.cwd)} leads to another folder now than when the person was asked."
    elif set(command.hosts) != set(asked.hosts):
        message = "The command would reach other hosts now than those that the person was asked about."
    elif asked.environment is not None and environment_of(session) != asked.environment:
        message = "The command would get other environment variables here and now than when the person was asked."
    if message:
        raise ToolError("CONFLICT", f"{message} Nothing was run. Call again.")


def environment_of(session: Session) -> str:
    """A digest of the variables that a command would get now."""
    from handrail.store.environments import digest_of  # noqa: PLC0415  only where somebody is asked

    return digest_of(session.commands.variables(session.workspace.roots))


def write_started(session: Session, flight: Flight) -> None:
    """The journal knows of a call with effects before the first of them; of a tool we did not write we never know.
    What is only said is written with the result."""
    spec = flight.tool.spec
    if spec.category != "builtin" or not _ONLY_SAID.issuperset(spec.side_effects):
        mark_started(session, flight)


def mark_started(session: Session, flight: Flight) -> None:
    """Writes the call down as started, unless it is, or is over."""
    if flight.recorded in {"started", "finished"}:
        return
    write_down(session, flight, "started", (ToolCallRunning, named(flight)))
    session.journal.deliver()


def run_tool(session: Session, flight: Flight) -> None:
    """Does it."""
    tool = flight.tool
    if session.ends(flight.call.tool_call_id):
        raise _cancelled(session)
    if tool.spec.side_effects:
        session.recorder.turn = session.turn or turn_of(session, flight)
    flight.output = tool.run(context_of(session, flight), flight.arguments)


def turn_of(session: Session, flight: Flight) -> str:
    """The turn that a call belongs to, also where another process than the loop's makes it: somebody said yes there.
    A call that no model made is a turn of its own, with its batch."""
    call = flight.call
    begun = session.journal.last_of("user") if call.message_id else None
    return call.trace_id if isinstance(begun, event.User) and begun.message_id == call.trace_id else flight.batch_id


def context_of(session: Session, flight: Flight) -> Context:
    """What the tool gets to know about its call."""
    if flight.tool.context is CommandContext:
        return command_context_of(session, flight)
    return Context(**_of_call(session, flight))


def command_context_of(session: Session, flight: Flight) -> CommandContext:
    """The same for handrail's own tools for commands, and those of servers."""
    return CommandContext(
        **_of_call(session, flight),
        facts=flight.facts,
        answered=flight.answer is not None,
        attempted=partial(_tell_attempt, session, flight),
        answer=flight.answer.kind if flight.answer is not None else None,
        sealed=sealed_in(flight.asked) if flight.asked is not None else None,
        judge=partial(judged, session, flight),
        needs_undo=partial(_needs_undo, flight),
        alone=partial(_alone, session, flight),
    )


def _of_call(session: Session, flight: Flight) -> dict[str, Any]:
    """Partial: functions within this one would be made anew at every call, which costs twice as much."""
    call = flight.call
    return {
        "session_id": session.id,
        "message_id": call.message_id,
        "tool_call_id": call.tool_call_id,
        "trace_id": call.trace_id,
        "workspace": session.workspace,
        "cancelled": _ending(session, flight),
        "limits": Limits(
            characters=flight.budget,
            restricted=session.rules.restriction is not None,
            offloads="read" in session.skills.offer.names,
            offline=is_network_closed(call.requested_permissions, session.rules),
            bulk=(flight.rules or session.rules).mode == "full",
        ),
        "metadata": partial(_tell, session, flight),
    }


def _tell(
    session: Session, flight: Flight, /, title: str | None = None, output: str | None = None, **more: Any
) -> None:
    mark_started(session, flight)
    if flight.recorded == "started":  # a thread that the tool left behind may still talk
        update = {"title": _text(title), "output": _text(output), "metadata": plain(more)[0] or None}
        session.journal.append((ToolCallUpdate, {**named(flight), **update}))


def _tell_attempt(session: Session, flight: Flight, /, host: str, port: int, allowed: bool, reason: str) -> None:
    if flight.recorded == "started":  # as above
        told = {"host": host, "port": port, "allowed": allowed, "reason": reason}
        session.journal.append((event.Network, {**told, "tool_call_id": flight.call.tool_call_id}))


def _ending(session: Session, flight: Flight) -> Callable[[], bool]:
    """Tells whether a call is to end; one beside others ends with them too."""
    call_id, stopped = flight.call.tool_call_id, flight.stopped
    if stopped is None:
        return partial(session.ends, call_id)
    return lambda: session.ends(call_id) or stopped.is_set()


def _was_tried(flight: Flight) -> bool:
    return flight.asked is not None and sealed_in(flight.asked) is not None


def judged(session: Session, flight: Flight, changes: tuple[Change, ...], configs: Mapping[str, str]) -> Decision:
    """What policy says of what a command changed in its layer."""
    from handrail.policy.changes import judge_changes  # noqa: PLC0415  few commands change something
    from handrail.runtime.repositories import steering_changes  # noqa: PLC0415  as above

    rules = flight.rules
    if rules is None:
        raise AssertionError("a command was judged before it ran")
    spoken_for = _is_spoken_for(flight, rules)
    decision = judge_changes(
        changes,
        rules,
        undo=True,
        spoken_for=spoken_for,
        configs=configs,
        tool=flight.name,
        steering=steering_changes(session.workspace, changes),
    )
    if decision.decision == "deny" or (decision.decision == "confirm" and not _was_tried(flight)):
        flight.judged = decision  # what asks of a result that somebody saw has its answer
    if decision.decision == "deny":
        warn(flight, decision.code or "POLICY_DENIED", f"What {flight.name} changed was refused by {decision.rule}.")
    return decision


def _is_spoken_for(flight: Flight, rules: Rules) -> bool:
    """Whether a person, a rule or a grant allowed the call: the mode by itself would not have."""
    if flight.answer is not None:
        return True
    by_mode = replace(rules, rules=(), grants=())
    return decide(flight.tool.spec, flight.call.requested_permissions, flight.facts, by_mode).decision != "allow"


def _needs_undo(flight: Flight) -> Decision | None:
    """What policy would say if undo did not cover what it changes; None where that would make no difference."""
    command, rules = flight.facts.command, flight.rules
    if command is None or rules is None or flight.answer is not None:
        return None
    facts = replace(flight.facts, command=replace(command, tier=min(command.tier, 2), snapshot=False))
    decision = decide(flight.tool.spec, flight.call.requested_permissions, facts, rules)
    return decision if decision.decision != "allow" else None


@contextlib.contextmanager
def _alone(session: Session, flight: Flight) -> Generator[None]:
    ending = _ending(session, flight)
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
    return None if value is None else readable(str(value))


def _cancelled(session: Session) -> ToolError:
    return ToolError("CANCELLED", f"The {_what_ended(session)} was cancelled. Nothing was run.")


def _what_ended(session: Session) -> str:
    return "session" if session.cancelled.is_set() else "call"


def warn(flight: Flight, code: str, text: str) -> None:
    """A warning event that goes with the call."""
    flight.drafts.append((event.Warning, {"code": code, "text": text, "tool_call_id": flight.call.tool_call_id}))
