"""The steps of a call, in the order they are taken. Each is one function; pipeline.py strings them together."""

from typing import Any

from handrail.policy.verdict import decide
from handrail.protocol import event
from handrail.protocol.arguments import Problem, checked, invalid
from handrail.protocol.change import ChangeSet
from handrail.protocol.decision import Decision, Facts
from handrail.protocol.error import ErrorCode, ToolError
from handrail.protocol.event import ToolCallRunning, ToolCallUpdate
from handrail.protocol.plain import readable
from handrail.protocol.tool import major
from handrail.protocol.wire import encode
from handrail.runtime.closing import start_draft
from handrail.runtime.crash import internal_error
from handrail.runtime.session import Flight, Session
from handrail.tools.contract import Context, Limits
from handrail.workspace.errors import clipped

LOCK_SECONDS = 5.0
QUEUE_SECONDS = 660.0


# Deciding


def find_tool(session: Session, flight: Flight) -> None:
    """Exactly the name that was called, or nothing runs."""
    name = flight.call.name
    tool = session.offer.get(name)
    if tool is None and session.repair == "case":
        tool = session.offer.differing_in_case(name)
        if tool is not None:
            warn(flight, "UNKNOWN_TOOL", f"{readable(name)[:80]} was taken for {tool.spec.name}.")
    if tool is None:
        message = f"Unknown Agent tool: {readable(name)[:200]}"
        warn(flight, "UNKNOWN_TOOL", message)
        raise ToolError("UNKNOWN_TOOL", message, details=list(session.offer.names))
    flight.tool = tool


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
    touched = flight.tool.touches(flight.arguments)
    fact = session.workspace.fact
    paths = [fact(path, "read") for path in touched.reads]
    paths += [fact(path, "write") for path in touched.writes]
    paths += [fact(path, "delete") for path in touched.deletes]
    flight.facts = Facts(paths=tuple(paths))


def decide_call(session: Session, flight: Flight) -> None:
    """Asks policy. A refusal is an error of the result; a question is left to the latch."""
    requested = flight.call.requested_permissions
    decision = flight.decision = decide(flight.tool.spec, requested, flight.facts, session.rules)
    if decision.decision == "deny":
        code = decision.code or "POLICY_DENIED"
        warn(flight, code, f"{flight.name} was refused by {decision.rule}: {decision.reason}.")
        message = _refusal(decision, code, _doing(flight, decision.subject))
        raise ToolError(code, message, details={"rule": decision.rule, "reason": decision.reason})


_GERUNDS: dict[str, str] = {"read": "reading", "write": "writing", "delete": "deleting"}


def _doing(flight: Flight, subject: str) -> str:
    """What the call would do to the subject, in a word."""
    access = next((fact.access for fact in flight.facts.paths if fact.path == subject), None)
    return _GERUNDS[access] if access else flight.name


def _refusal(decision: Decision, code: ErrorCode, doing: str) -> str:
    subject = clipped(decision.subject)
    if code == "OUTSIDE_WORKSPACE":
        return f"{subject} is outside the workspace. Paths are relative to it. Ask the person if you need it."
    if code == "PERMISSION_DENIED":
        return f"{doing} {subject} needs a person's yes: {decision.reason}. Nothing ran. Do not repeat this call."
    forbidden = f"Rule {decision.rule} forbids {doing} {subject}: {decision.reason}."
    return f"{forbidden} Do not try another way; say what you need it for."


# Running


def wait_in_queue(session: Session, flight: Flight) -> None:
    """Calls with effects run one at a time in a session, in whatever process they come from."""
    if not flight.tool.spec.side_effects:
        return
    session.queue.acquire()
    flight.held.append(session.queue.release)
    release = session.locks.take(f"session:{session.folder}", QUEUE_SECONDS, session.cancelled.is_set)
    if release is None:
        raise ToolError("CONFLICT", "Another call of this session is still running. Nothing was run. Try again later.")
    flight.held.append(release)


def take_locks(session: Session, flight: Flight) -> None:
    """Holds every file the call will change, against other sessions; always in the same order."""
    changed = {fact.real for fact in flight.facts.paths if fact.access != "read" and fact.real is not None}
    for real in sorted(changed):
        resource = f"file:{session.workspace.main.path}/{real}" if not real.startswith("/") else f"file:{real}"
        release = session.locks.take(resource, LOCK_SECONDS, session.cancelled.is_set)
        if release is None:
            raise ToolError("CONFLICT", f"{real} is being changed by another session. Nothing was run. Try again.")
        flight.held.append(release)


def write_started(session: Session, flight: Flight) -> None:
    """The journal knows of a call with effects before the first of them."""
    if flight.tool.spec.side_effects:
        mark_started(session, flight)


def mark_started(session: Session, flight: Flight) -> None:
    """Writes the call down as started, unless it is."""
    if flight.recorded == "started":
        return
    running = (ToolCallRunning, named(flight))
    if flight.recorded is None:
        drafts = (start_draft(flight), *flight.drafts, running)
        facts, decision = encode(flight.facts), encode(flight.decision)
        session.journal.record(flight.call.tool_call_id, flight.batch_id, facts, decision, "started", drafts)
    else:
        session.journal.move(flight.call.tool_call_id, "started", (*flight.drafts, running))
    flight.drafts.clear()
    flight.recorded = "started"


def run_tool(session: Session, flight: Flight) -> None:
    """Does it."""
    tool = flight.tool
    if session.cancelled.is_set():
        raise ToolError("CANCELLED", "The session was cancelled. Nothing was run.")
    try:
        output = tool.run(context_of(session, flight), flight.arguments)
    except RecursionError as error:
        raise internal_error(error, session.crashes()) from None
    if output.changes is not None:
        _tell_change(flight, output.changes)
    flight.output = output


def context_of(session: Session, flight: Flight) -> Context:
    """What the tool gets to know about its call."""

    def metadata(title: str | None = None, output: str | None = None, **more: Any) -> None:
        mark_started(session, flight)
        update = {"title": title, "output": output, "metadata": more or None}
        session.journal.append((ToolCallUpdate, {**named(flight), **update}))

    call = flight.call
    return Context(
        session_id=session.id,
        tool_call_id=call.tool_call_id,
        trace_id=call.trace_id,
        message_id=call.message_id,
        workspace=session.workspace,
        limits=Limits(characters=flight.budget),
        cancelled=session.cancelled.is_set,
        metadata=metadata,
    )


def named(flight: Flight) -> dict[str, Any]:
    """How an event says which call it is about."""
    return {"tool_call_id": flight.call.tool_call_id, "tool_call_name": flight.name}


def warn(flight: Flight, code: str, text: str) -> None:
    """A warning event that goes with the call."""
    flight.drafts.append((event.Warning, {"code": code, "text": text, "tool_call_id": flight.call.tool_call_id}))


def _tell_change(flight: Flight, changes: ChangeSet) -> None:
    flight.drafts.append((event.Change, {**named(flight), "change": changes}))
