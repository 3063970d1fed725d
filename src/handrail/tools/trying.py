"""Commands that run in a layer: tried before somebody is asked, judged by what they changed, and kept."""

from msgspec.structs import replace

from handrail.changes.layered.committing import commit
from handrail.changes.layered.diffing import with_diffs
from handrail.changes.layered.examining import examine
from handrail.changes.layered.sealing import drop, seal, unseal
from handrail.changes.layered.trial import Trial
from handrail.changes.recorder import Recorded, Recorder
from handrail.policy.confinement import Runnable, runnable
from handrail.process.cleaning import cleaned
from handrail.process.running import run_launch
from handrail.protocol.error import ToolError
from handrail.protocol.permission import Preview, Tried
from handrail.protocol.result import SandboxUsed
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.layer.layer import Layer
from handrail.tools.commands import Commands
from handrail.tools.contract import AsksError, Context, Output
from handrail.tools.exec import ExecArguments
from handrail.tools.exec_answer import answer_of
from handrail.tools.executing import command_of, folder_of, updates_of

_SHOWN = 60_000


def preview_command(context: Context, arguments: ExecArguments, commands: Commands, recorder: Recorder) -> Preview:
    """Tries the command in a layer, as one that nobody was asked about; what waits for the answer."""
    fact = command_of(context)
    todo = runnable(fact.text, fact.cwd, fact.there)
    if fact.tier < 3:
        return Preview(kind="none", text="no layer here")
    confinement = commands.confinement(context, folder_of(context, fact.cwd), arguments.timeout_ms, todo)
    with commands.sandbox.new_layer(confinement.writable) as layer:
        trial = _tried(context, todo, confinement, commands, layer)
        return _previewed(trial, seal(context.workspace, recorder.history, trial, layer))


def execute_layered(
    context: Context, todo: Runnable, confinement: Confinement, commands: Commands, recorder: Recorder
) -> Output:
    """Runs the command in a layer, and keeps what it changed, where policy has nothing against it."""
    with commands.sandbox.new_layer(confinement.writable) as layer:
        trial = _tried(context, todo, confinement, commands, layer)
        decision = context.judge(trial.examined.changes, {})
        if decision.decision == "confirm":
            raise AsksError(decision, _previewed(trial, seal(context.workspace, recorder.history, trial, layer)))
        if decision.decision == "deny":
            raise ToolError("POLICY_DENIED", f"{decision.reason}. What it changed was dropped.")
        return _kept(context, trial, recorder, layer)


def keep_sealed(context: Context, sealed: str, recorder: Recorder) -> Output:
    """Keeps what somebody said yes to, or only what it printed."""
    trial = unseal(recorder.history, sealed)
    try:
        return _answered(context, trial) if context.answer == "output" else _kept(context, trial, recorder, None)
    finally:
        drop(recorder.history, sealed)


def _tried(context: Context, todo: Runnable, confinement: Confinement, commands: Commands, layer: Layer) -> Trial:
    ran = run_launch(
        commands.sandbox.launch(confinement, todo.text, layer),
        limits=confinement.limits,
        cancelled=context.cancelled,
        on_output=updates_of(context).feed,
        spill_folder=commands.spill_folder,
    )
    examined = with_diffs(context.workspace, layer, examine(context.workspace, layer))
    return Trial(ran=ran, examined=examined)


def _previewed(trial: Trial, sealed: str) -> Preview:
    examined, ran = trial.examined, trial.ran
    diff = "".join(examined.diffs)
    printed = cleaned(ran.output.head)
    files = [change for change in examined.changes if change.kind != "folder"]
    tried = Tried(
        sealed=sealed,
        exit_code=ran.exit_code,
        duration_ms=round(ran.seconds * 1000, 3),
        ending=ran.ending,
        changes=examined.changes[:200],
        files=len(files),
        deleted=sum(change.action == "deleted" for change in files),
        added=sum(change.added or 0 for change in files),
        removed=sum(change.removed or 0 for change in files),
        lines=printed.count("\n"),
        last_line=printed.strip().rpartition("\n")[2][:200],
    )
    return Preview(kind="run", text=diff[:_SHOWN], truncated=len(diff) > _SHOWN, output=printed[:_SHOWN], tried=tried)


def _kept(context: Context, trial: Trial, recorder: Recorder, layer: Layer | None) -> Output:
    if not trial.examined.steps:
        return _answered(context, trial)
    with context.alone():
        made = commit(
            context.workspace,
            recorder,
            trial.examined,
            layer,
            session_id=context.session_id,
            call_id=context.tool_call_id,
            summary=command_of(context).text[:200],
        )
    return _answered(context, trial, made)


def _answered(context: Context, trial: Trial, made: Recorded | None = None) -> Output:
    fact = command_of(context)
    todo = runnable(fact.text, fact.cwd, fact.there)
    confinement = Confinement(trust="unasked", cwd="/", read_only=())
    used = SandboxUsed(tier=3, net="none", undo="layer")
    output = answer_of(context, trial.ran, todo, confinement, used)
    if made is None:
        return output
    changed = tuple(change.path for change in made.changes.changes if change.kind != "folder")
    return replace(output, changes=made.changes, files_changed=changed)
