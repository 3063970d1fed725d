"""Words the question about a call: what it is, why it asks, what it would change, and what can be answered."""

from collections.abc import Sequence

from msgspec.structs import replace

from handrail.policy.permissions import permissions_of
from handrail.protocol.decision import DecisionPart, ForeignFact
from handrail.protocol.error import ToolError
from handrail.protocol.event import ToolCallPermissionRequired
from handrail.protocol.permission import AnswerKind, Basis, PermissionRequest, Preview, permission_type
from handrail.protocol.wire import encode
from handrail.runtime.closing import named
from handrail.runtime.outside import asked_folders, request_to_open
from handrail.runtime.session import Flight, Session
from handrail.runtime.steps import environment_of
from handrail.store.identity import new_id

POSSIBLE: tuple[AnswerKind, ...] = ("once", "deny")
"""The answers that are always possible."""
GRANTING: tuple[AnswerKind, ...] = ("once", "session", "workspace", "deny")
"""The answers where every part that asks is of a class that may be granted."""
UNKEEPABLE: tuple[AnswerKind, ...] = ("output", "deny")
"""The answers where the trial was stopped: half of a result is none that one could keep."""

_GIST, _MOST_SENT = 200, 20_000
"""Characters of what another server would be sent, in a few words and in full."""


def ask(session: Session, flight: Flight, earlier: Sequence[Flight]) -> None:
    """Puts the question, with what the call would change. `earlier`: the calls before it in its batch."""
    request = question_about(session, flight, earlier)
    encode(request)  # a preview of a custom tool may hold anything; it must not be found out when others are written
    flight.drafts.append((ToolCallPermissionRequired, {**named(flight), "permission_request": request}))
    flight.asked = request


def question_about(session: Session, flight: Flight, earlier: Sequence[Flight] = ()) -> PermissionRequest:
    """The question as it would be put now. A command that can be is tried for it."""
    from handrail.runtime.basis import basis_of  # noqa: PLC0415  most calls ask nobody
    from handrail.runtime.trials import asking_of_result, not_tried, preview_of  # noqa: PLC0415

    # What is in a folder that is not open yet is shown to nobody, nor does a refusal tell of it.
    if folders := asked_folders(flight.facts):
        told = not_tried(f"a yes opens {next(iter(folders))} first") if flight.facts.command is not None else None
        return worded(session, flight, told, basis_of(session, flight))
    # First what the files are, then what would change: a change in between then makes the answer void.
    based_on = basis_of(session, flight) if flight.facts.command is None else ()
    variables: list[str] = []
    preview = preview_of(session, flight, earlier, lambda: variables.append(environment_of(session)))
    if flight.facts.command is not None and (preview is None or preview.tried is None):
        based_on = basis_of(session, flight)
    environment = variables[-1] if variables else None
    return _with_parts(worded(session, flight, preview, based_on, environment), asking_of_result(session, flight))


def _with_parts(request: PermissionRequest, found: tuple[DecisionPart, ...]) -> PermissionRequest:
    """The question with what asks of the result besides the command."""
    if not found or request.command is None:
        return request
    own = DecisionPart(subject=request.command, decision="confirm", rule=request.rule, reason=request.reason)
    return replace(request, parts=(*(request.parts or (own,)), *found))


def worded(
    session: Session,
    flight: Flight,
    preview: Preview | None,
    based_on: tuple[Basis, ...] = (),
    environment: str | None = None,
) -> PermissionRequest:
    """The question in full. `based_on`: nothing where the call was tried, since what is kept is not run again.
    `environment`: the digest of a command's variables, where it is known."""
    tool, facts, command = flight.tool, flight.facts.paths, flight.facts.command
    # What was opened to a command by a yes is opened for that call alone, so it asks again.
    grants = () if command is not None and command.hosts else flight.verdict.grants
    request = PermissionRequest(
        id=new_id("ask"),
        tool_call_id=flight.call.tool_call_id,
        tool_name=tool.spec.own_name,
        server_name=tool.spec.server,
        permission_type=permission_type(tool.spec.permissions),
        description=_description(flight),
        rule=flight.verdict.rule,
        reason=flight.verdict.reason,
        permissions=permissions_of(tool.spec, flight.facts),
        answers=_answers(grants, preview),
        session_id=session.id,
        batch_id=flight.batch_id,
        paths=tuple(fact.path for fact in facts),
        command=command.text if command else None,
        cwd=session.workspace.look(command.cwd, "read").real if command else None,
        tier=command.tier if command else None,
        background=command is not None and command.outlives,
        process=flight.facts.process.id if flight.facts.process else None,
        environment=(environment or environment_of(session)) if command else None,
        hosts=command.hosts if command else (),
        parts=flight.verdict.parts,
        grants=grants,
        preview=preview,
        based_on=based_on,
        tool_call_name=tool.spec.name if tool.spec.foreign is not None else None,
        fingerprint=tool.spec.foreign.fingerprint if tool.spec.foreign is not None else None,
    )
    return request_to_open(request, flight.facts)


def require_answer(session: Session, flight: Flight) -> None:
    """A step: nobody was asked, because the preview failed, and will again, or because the mode is stricter now."""
    if flight.answer is None and flight.decision.decision == "confirm":
        question_about(session, flight)
        raise ToolError("CONFLICT", "This needs a person's yes now, and nobody was asked. Nothing ran. Call again.")


def tell_of_edit(_: Session, flight: Flight) -> None:
    """A step behind the run: the model reads that it was not its command that ran, but which."""
    asked, output = flight.asked, flight.output
    if asked is None or not asked.edited or output is None:
        return
    told = f"The person changed the command to: {asked.command}"
    flight.output = replace(output, content=f"{told}\n{output.content}", summary=f"{output.summary} (changed command)")


def _answers(grants: tuple[str, ...], preview: Preview | None) -> tuple[AnswerKind, ...]:
    """The answers that are possible. `output` is where a command was tried."""
    *yes, no = GRANTING if grants else POSSIBLE
    if preview is None or preview.tried is None:
        return (*yes, no)
    return (*yes, "output", no) if preview.tried.ending == "exit" else UNKEEPABLE


def _of_server(flight: Flight, fact: ForeignFact) -> str:
    """Which tool of which server, and what it would be sent: of one that was changed all of it, since what changed is
    shown in the place of that."""
    sent = encode(flight.args).decode()
    most = _MOST_SENT if fact.changed else _GIST
    told = sent if len(sent) <= most else f"{sent[:most]}… ({len(sent):,} characters)"
    return f"{fact.tool} ({fact.server}) {told}"


def _description(flight: Flight) -> str:
    """The call in a few words; of a command, all of it, and where."""
    command = flight.facts.command
    if flight.facts.foreign is not None:
        return _of_server(flight, flight.facts.foreign)
    if flight.facts.process is not None:
        return f"Write to {flight.facts.process.id}, which runs: {flight.facts.process.command}"
    if (memory := flight.facts.memory) is not None:
        return f"{flight.tool.spec.title}: {memory.action} {memory.note}".strip()
    about = command.text if command is not None else ", ".join(fact.path for fact in flight.facts.paths)
    where = f"in {command.cwd}: " if command is not None and command.cwd != "." else ""
    return f"{flight.tool.spec.title} {where}{about}".strip()
