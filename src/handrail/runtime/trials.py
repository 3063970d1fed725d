"""Commands are tried before somebody is asked about them: whether that can be, and what asks of what came of it."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.protocol.decision import CommandFact, Decision, DecisionPart, Mode
from handrail.protocol.error import StoreError, ToolError
from handrail.protocol.permission import Preview
from handrail.protocol.tool import ASIDE
from handrail.runtime.session import Flight, Session
from handrail.runtime.steps import context_of, judged
from handrail.tools.contract import CommandContext

if TYPE_CHECKING:
    from handrail.runtime.rehearsing import Below

_REFUSALS = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE", "CANCELLED"})
"""Of what the trial came to, not of the trial: nobody is asked then."""
_CHANGED_FIRST = "an earlier call of this batch changes files first"
_LONGEST = 80


def preview_of(
    session: Session, flight: Flight, earlier: Sequence[Flight] = (), meanwhile: Callable[[], object] | None = None
) -> Preview | None:
    """What a person is shown before they answer. A preview that fails is the call's failure; a trial that could not be
    made is not: then the question says so. `earlier`: the calls before it in its batch. `meanwhile` may be called where
    a trial has to wait."""
    if flight.facts.command is None:
        return _shown(session, flight)
    reason = _why_not(session, flight, flight.facts.command)
    if reason is not None:
        return not_tried(reason)
    changing = [one for one in earlier if may_change(one)]
    if not changing:
        return _tried(session, flight, (), meanwhile)
    from handrail.runtime.rehearsing import left_by  # noqa: PLC0415  few batches have a command behind a change

    below = left_by(session, changing)
    return not_tried(_CHANGED_FIRST) if below is None else _tried(session, flight, tuple(below), meanwhile)


def why_not_tried(command: CommandFact, *, mode: Mode, tries: bool) -> str | None:
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


def not_tried(reason: str) -> Preview:
    """What is shown in the place of a trial."""
    return Preview(kind="none", text=reason)


def _why_not(session: Session, flight: Flight, command: CommandFact) -> str | None:
    rules = flight.rules
    mode = session.rules.mode if rules is None else rules.mode
    reason = why_not_tried(command, mode=mode, tries=session.tries)
    if reason is None and command.hosts:
        reason = f"needs the network ({_what_reaches(command, flight.decision)})"
    if reason is None and not command.layered:
        why = session.commands.why_no_layer(session.workspace.roots)
        reason = f"no layer here: {why or 'the sandbox has none'}"
    return reason


def may_change(flight: Flight) -> bool:
    """Whether a call that did not run yet may change files."""
    if flight.error is not None or ASIDE.issuperset(flight.tool.spec.side_effects):
        return False
    if flight.asked is not None and "once" not in flight.asked.answers:
        return False  # its trial was stopped, so nothing of it is kept
    if flight.answer is not None and flight.answer.kind in {"deny", "output"}:
        return False
    command = flight.facts.command
    if command is None:
        return flight.facts.process is None
    from handrail.policy.confinement import runnable  # noqa: PLC0415  tables that only commands need

    return not runnable(command.text, command.cwd, command.there).proven


def _what_reaches(command: CommandFact, decision: Decision) -> str:
    """The part of the command that needs the network, as far as one can tell; else the hosts."""
    from handrail.policy.network.needs import needs_of  # noqa: PLC0415  few commands need one

    for part in decision.parts or (decision,):
        needs = needs_of(part.subject, command.cwd)
        if needs.hosts or needs.remotes or needs.unopened:
            return part.subject if len(part.subject) <= _LONGEST else f"{part.subject[:_LONGEST]}…"
    return ", ".join(command.hosts[:3])


def _tried(
    session: Session, flight: Flight, below: "tuple[Below, ...]", meanwhile: Callable[[], object] | None
) -> Preview:
    try:
        preview = _shown(session, flight, below, meanwhile)
    except ToolError as error:
        if error.code in _REFUSALS or "limits" in error.named_details:
            raise
        return not_tried(f"it could not be tried: {error.message}")
    except (OSError, StoreError) as error:  # no room for a layer, or for what came of it
        return not_tried(f"it could not be tried: {error}")
    if preview is None:
        return not_tried("nothing tries it")
    if preview.tried is not None:
        flight.tried = preview.tried.sealed
        preview = replace(preview, tried=replace(preview.tried, on=tuple(one.name for one in below)))
    if session.ends(flight.call.tool_call_id):
        raise ToolError("CANCELLED", "The call was cancelled. Nothing was kept.")
    return preview


def asking_of_result(session: Session, flight: Flight) -> tuple[DecisionPart, ...]:
    """What asks of what the trial changed, whatever the command is. ToolError where no yes can allow it: then nobody is
    asked. It is judged whole, however much of it is shown."""
    if flight.tried is None:
        return ()
    from handrail.changes.layered.configs import sealed_configs  # noqa: PLC0415  few commands are tried
    from handrail.changes.layered.sealing import unseal  # noqa: PLC0415

    examined = unseal(session.recorder.history, flight.tried).examined
    configs = sealed_configs(session.workspace, session.recorder.history, examined)
    decision = judged(session, flight, examined.changes, configs)
    if decision.decision == "allow":
        return ()
    if decision.decision == "deny":
        message = f"Rule {decision.rule} forbids what it would change: {decision.reason}. It was dropped."
        details = {"rule": decision.rule, "reason": decision.reason}
        advice = "Do not try another way; say what you need it for."
        raise ToolError(decision.code or "POLICY_DENIED", f"{message} {advice}", details=details)
    flight.judged = None  # the person is asked about the command, and sees this beside it
    found = decision.parts or (
        DecisionPart(subject=decision.subject, decision="confirm", rule=decision.rule, reason=decision.reason),
    )
    return tuple(part for part in found if part.decision == "confirm")


def _shown(
    session: Session,
    flight: Flight,
    below: "tuple[Below, ...]" = (),
    meanwhile: Callable[[], object] | None = None,
) -> Preview | None:
    if flight.tool.preview is None:
        return None
    # The call has not begun, so there is nothing to tell about it.
    silent = replace(context_of(session, flight), metadata=tell_nobody)
    if isinstance(silent, CommandContext):
        silent = replace(silent, below=tuple(one.examined for one in below), meanwhile=meanwhile or silent.meanwhile)
    preview = flight.tool.preview(silent, flight.arguments)
    return replace(preview, time=preview.time or datetime.now(UTC))


def tell_nobody(**_: object) -> None:
    """What a call tells on its way that is not carried out."""
