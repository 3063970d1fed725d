"""Commands that run on the files themselves, since no layer can be had: what was there is kept beforehand.

What a snapshot holds is judged by what became of it, as in a layer, and taken back at once where somebody has to say
yes to it first. What it does not hold cannot be taken back: where nobody was asked, that cannot be written to.
"""

import contextlib
import time

from msgspec.structs import replace

from handrail.changes.layered.sealing import seal
from handrail.changes.layered.trial import Examined, Trial
from handrail.changes.recorder import TAKEN_BACK, Recorded, Recorder
from handrail.changes.snapshots.configs import config_texts
from handrail.changes.snapshots.recording import finish_command, finish_unkept
from handrail.changes.snapshots.watch import Watch, Watched
from handrail.policy.confinement import Runnable
from handrail.protocol.decision import Decision
from handrail.protocol.error import StoreError, ToolError
from handrail.protocol.permission import Preview
from handrail.sandbox.confinement import Confinement
from handrail.tools.commands import Commands
from handrail.tools.contract import AsksError, CommandContext, Output
from handrail.tools.exec_answer import answer_of
from handrail.tools.outcome import Outcome
from handrail.tools.running import Went, command_of, remove_printed, run_command
from handrail.tools.snapshot_seals import MOST_SEALED, seals
from handrail.tools.snapshot_words import lost_words, refused, snapshot_sandbox_of, stays_words, unwritable_line
from handrail.tools.trying import previewed
from handrail.tools.undo import UndoArguments, undo_tool

_SUMMARY = 200


def execute_watched(
    context: CommandContext, todo: Runnable, confinement: Confinement, commands: Commands, recorder: Recorder
) -> Output:
    """Runs a command that is allowed. AsksError where somebody has to say yes: to what it changed, which waits, or to
    running it at all, where undo would not cover it."""
    with context.alone():
        watch = Watch(context.workspace, recorder.history)
        if watch.snapshot is None:
            _check_uncovered(context.needs_undo(), watch.why)
        sealed = seals(context, watch, commands)
        if len(sealed) > MOST_SEALED:
            _check_uncovered(context.needs_undo(), f"{len(sealed):,} paths could neither be kept nor made read-only")
        confinement = replace(confinement, sealed=(*confinement.sealed, *sealed))
        number = recorder.begin_command(context.tool_call_id, command_of(context).text[:_SUMMARY])
        try:
            went = run_command(context, todo, confinement, commands, hosts=commands.hosts_open_to(context, todo))
        except BaseException:
            with contextlib.suppress(StoreError, ToolError, OSError):
                _cut_off(context, recorder, number, watch.over())
            raise
        try:
            return _concluded(context, todo, went, commands, recorder, watch, number)
        except BaseException:
            remove_printed(went.ran)
            raise


def _concluded(
    context: CommandContext,
    todo: Runnable,
    went: Went,
    commands: Commands,
    recorder: Recorder,
    watch: Watch,
    number: int,
) -> Output:
    watched = watch.over(tidy=not context.answered)
    sandbox = snapshot_sandbox_of(context, went, commands, watched)
    made = _recorded(context, recorder, number, watched, sandbox.not_covered)
    outcome = Outcome(made=made)
    if made is not None and watched.examined is not None and not context.answered:
        trial = Trial(ran=went.ran, examined=watched.examined, blocked=went.blocked, sandbox=sandbox)
        outcome = _judged(context, recorder, trial, made)
    line = unwritable_line(went, watch.uncovered())
    output = answer_of(
        context, went.ran, todo, went.confinement.limits, sandbox, (*went.blocked, *([line] if line else [])), outcome
    )
    return replace(
        output,
        warnings=(*output.warnings, *lost_words(watched, judged=watch.snapshot is not None and not context.answered)),
    )


def _recorded(
    context: CommandContext, recorder: Recorder, number: int, watched: Watched, not_covered: tuple[str, ...]
) -> Recorded | None:
    history, summary = recorder.history, command_of(context).text[:_SUMMARY]
    if watched.examined is not None:
        return finish_command(history, number, summary, watched.examined, watched.was, not_covered)
    return finish_unkept(history, number, summary, watched.changes)


def _cut_off(context: CommandContext, recorder: Recorder, number: int, watched: Watched) -> None:
    """Of one that an interrupt stopped too, nothing stays that somebody would have to say yes to."""
    made = _recorded(context, recorder, number, watched, ())
    if made is None or watched.examined is None or context.answered:
        return
    examined = watched.examined
    if context.judge(examined.changes, config_texts(context.workspace, examined.steps)).decision != "allow":
        _take_back(context, recorder, made)


def _judged(context: CommandContext, recorder: Recorder, trial: Trial, made: Recorded) -> Outcome:
    """What policy says to it: what it does not let be is taken back."""
    examined = trial.examined
    decision = context.judge(examined.changes, config_texts(context.workspace, examined.steps))
    if decision.decision == "allow":
        return Outcome(made=made)
    try:
        _take_back(context, recorder, made)
    except (ToolError, StoreError) as error:
        return Outcome(made=replace(made, problem=stays_words(decision, made, error)))
    if decision.decision == "deny" or trial.ran.ending != "exit":
        return Outcome(failure=refused(decision))
    waiting = replace(trial, examined=_as_it_waits(examined))
    raise AsksError(decision, previewed(waiting, seal(context.workspace, recorder.history, waiting, None)))


def _take_back(context: CommandContext, recorder: Recorder, made: Recorded) -> None:
    """At once, on the record like any undo, which keeps what it takes away. ToolError where that cannot be."""
    own = replace(context, tool_call_id=f"{context.tool_call_id}{TAKEN_BACK}")
    undo_tool(context.workspace, recorder).run(own, UndoArguments(numbers=(made.changes.number or 0,)))


def _as_it_waits(examined: Examined) -> Examined:
    """What has a later change time than this was changed by others."""
    return replace(examined, started=time.time_ns())


def _check_uncovered(decision: Decision | None, why: str) -> None:
    """Nothing has run yet: what was allowed since undo would cover it has to be asked about."""
    if decision is None:
        return
    reason = f"{decision.reason}; there is no snapshot, since {why}"
    if decision.decision == "confirm":
        raise AsksError(replace(decision, reason=reason), Preview(kind="none", text=f"no snapshot, since {why}"))
    details = {"rule": decision.rule, "reason": reason}
    message = f"It needs a person's yes: {reason}. Nothing ran. Do not repeat this call."
    raise ToolError(decision.code or "PERMISSION_DENIED", message, details=details)
