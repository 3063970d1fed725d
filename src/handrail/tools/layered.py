"""Commands whose changes go into a layer first: run, judged by what they changed, and kept or dropped."""

from handrail.changes.layered.committing import commit
from handrail.changes.layered.configs import configs_of
from handrail.changes.layered.sealing import unseal
from handrail.changes.layered.trial import Trial
from handrail.changes.recorder import Recorder
from handrail.policy.confinement import Runnable, runnable
from handrail.protocol.decision import Decision
from handrail.protocol.error import StoreError, ToolError
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.layer.layer import Layer
from handrail.tools.commands import Commands
from handrail.tools.contract import AsksError, CommandContext, Output
from handrail.tools.exec import ExecArguments
from handrail.tools.exec_answer import answer_of
from handrail.tools.outcome import Outcome
from handrail.tools.running import Confirm, command_of, remove_printed, watch_disk
from handrail.tools.trying import layer_over, not_put_by, previewed, sealed_trial, try_command

_SUMMARY = 200


def execute_layered(
    context: CommandContext,
    arguments: ExecArguments,
    todo: Runnable,
    confinement: Confinement,
    commands: Commands,
    recorder: Recorder,
    confirm: Confirm | None = None,
) -> Output:
    """Runs a command that is allowed, and keeps what it changed where policy has nothing against it. AsksError where
    somebody has to say yes to that: then all of it waits."""
    hosts = commands.hosts_open_to(context, todo)
    with layer_over(context, confinement, commands) as layer:
        confinement = watch_disk(context, confinement, layer)
        trial = try_command(context, todo, confinement, commands, layer, hosts, confirm)
        return conclude(context, arguments, trial, commands, recorder, layer)


def conclude(
    context: CommandContext,
    arguments: ExecArguments,
    trial: Trial,
    commands: Commands,
    recorder: Recorder,
    layer: Layer,
) -> Output:
    """Judges what came of a command that was allowed, and keeps it or does not."""
    try:
        outcome = _judged(context, trial, recorder, layer)
    except AsksError:
        raise  # what it printed waits too
    except BaseException:
        remove_printed(trial.ran)
        raise
    return _answered(context, arguments, trial, commands, outcome)


def keep_sealed(
    context: CommandContext, arguments: ExecArguments, sealed: str, commands: Commands, recorder: Recorder
) -> Output:
    """Keeps what somebody said yes to, or only what it printed. Nothing is run again. The trial itself is forgotten
    when the call has its result, which takes over the file of what was printed."""
    trial = unseal(recorder.history, sealed)
    outcome = _only_printed(trial) if context.answer == "output" else _still_allowed(context, trial, recorder)
    return _answered(context, arguments, trial, commands, outcome)


def _still_allowed(context: CommandContext, trial: Trial, recorder: Recorder) -> Outcome:
    """Keeps it, but for what policy has come to forbid since somebody was asked: a yes lifts no deny."""
    decision = context.judge(trial.examined.changes, {})
    if decision.decision == "deny":
        return Outcome(failure=_refused(decision))
    return keep(context, trial, recorder, None)


def keep(context: CommandContext, trial: Trial, recorder: Recorder, layer: Layer | None) -> Outcome:
    """Makes the changes, all of them or none. What stands in the way is told beside what the command printed."""
    unkept = trial.examined.unkept
    if not trial.examined.steps:
        return Outcome(unkept=unkept)
    try:
        with context.alone():
            made = commit(
                context.workspace,
                recorder,
                trial.examined,
                layer,
                session_id=context.session_id,
                call_id=context.tool_call_id,
                summary=command_of(context).text[:_SUMMARY],
                not_covered=trial.sandbox.not_covered,
            )
    except ToolError as error:
        return Outcome(failure=_in_words(context, error))
    except StoreError as error:
        if recorder.made_by(context.tool_call_id) is not None:
            raise  # whether it was made is settled by the files, once the store can be used again
        return Outcome(failure=not_put_by(error))
    return Outcome(made=made, unkept=unkept)


def _in_words(context: CommandContext, error: ToolError) -> ToolError:
    """Where nobody saw a preview, none was out of date."""
    path = error.named_details.get("path")
    if context.sealed is not None or error.code != "CONFLICT" or path is None:
        return error
    message = f"{path} was changed by somebody else while the command ran. Nothing was kept. Call again."
    return ToolError("CONFLICT", message, details=error.details)


def _judged(context: CommandContext, trial: Trial, recorder: Recorder, layer: Layer) -> Outcome:
    if trial.ran.ending != "exit":
        return Outcome()
    decision = context.judge(trial.examined.changes, configs_of(context.workspace, layer, trial.examined))
    if decision.decision == "allow":
        return keep(context, trial, recorder, layer)
    if decision.decision == "deny":
        return Outcome(failure=_refused(decision))
    try:
        sealed = sealed_trial(context, recorder, trial, layer)
    except ToolError as error:
        return Outcome(failure=error)
    raise AsksError(decision, previewed(trial, sealed))


def _refused(decision: Decision) -> ToolError:
    details = {"rule": decision.rule, "reason": decision.reason}
    if decision.code == "PERMISSION_DENIED":
        message = f"What it changed needs a person's yes: {decision.reason}. It was dropped. Do not repeat this call."
        return ToolError("PERMISSION_DENIED", message, details=details)
    forbidden = f"Rule {decision.rule} forbids what it changed: {decision.reason}. It was dropped."
    advice = "Do not try another way; say what you need it for."
    return ToolError(decision.code or "POLICY_DENIED", f"{forbidden} {advice}", details=details)


def _only_printed(trial: Trial) -> Outcome:
    return Outcome(dropped=bool(trial.examined.steps))


def _answered(
    context: CommandContext, arguments: ExecArguments, trial: Trial, commands: Commands, outcome: Outcome
) -> Output:
    fact = command_of(context)
    todo = runnable(fact.text, fact.cwd, fact.there)
    limits = commands.limits(arguments.timeout_ms, restricted=context.limits.restricted)
    try:
        return answer_of(context, trial.ran, todo, limits, trial.sandbox, trial.blocked, outcome)
    except BaseException:
        remove_printed(trial.ran)
        raise
