"""Commands whose changes go into an overlay first: run, judged by what they changed, and committed or dropped."""

from handrail.changes.layered.committing import commit
from handrail.changes.layered.configs import read_git_configs
from handrail.changes.layered.sealing import load_preview
from handrail.changes.layered.trial import CommandPreview
from handrail.changes.recorder import Recorder
from handrail.policy.parse import ParsedCommand, parse_fact
from handrail.protocol.decisions import Decision
from handrail.protocol.errors import StoreError, ToolError
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.layer.layer import Overlay
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import ApprovalNeededError, CommandContext, Output
from handrail.tools.exec_answer import build_exec_output
from handrail.tools.exec_spec import ExecArguments
from handrail.tools.outcome import ChangeOutcome
from handrail.tools.running import Confirm, remove_spill_files, require_command_fact, watch_disk
from handrail.tools.trying import build_storage_error, open_overlay, run_preview, store_preview, to_permission_preview

_MAX_SUMMARY_CHARS = 200


def execute_in_overlay(
    context: CommandContext,
    arguments: ExecArguments,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    recorder: Recorder,
    confirm: Confirm | None = None,
) -> Output:
    """Runs a command that is allowed, and commits what it changed if policy has nothing against it.
    ApprovalNeededError if somebody has to approve that: then all of it waits."""
    hosts = commands.hosts_open_to(context, todo)
    with open_overlay(context, profile, commands) as overlay:
        profile = watch_disk(context, profile, overlay)
        preview = run_preview(context, todo, profile, commands, overlay, hosts, confirm)
        return judge_and_commit(context, arguments, preview, commands, recorder, overlay)


def judge_and_commit(
    context: CommandContext,
    arguments: ExecArguments,
    preview: CommandPreview,
    commands: CommandEnvironment,
    recorder: Recorder,
    overlay: Overlay,
) -> Output:
    """Judges what came of a command that was allowed, and commits it or does not."""
    try:
        outcome = _judged(context, preview, recorder, overlay)
    except ApprovalNeededError:
        raise  # what it printed waits too
    except BaseException:
        remove_spill_files(preview.ran)
        raise
    return _answered(context, arguments, preview, commands, outcome)


def commit_stored_preview(
    context: CommandContext, arguments: ExecArguments, sealed: str, commands: CommandEnvironment, recorder: Recorder
) -> Output:
    """Commits what somebody approved, or only what it printed. Nothing is run again. The preview itself is deleted
    when the call has its result, which takes over the file of what was printed."""
    preview = load_preview(recorder.history, sealed)
    outcome = _only_printed(preview) if context.answer == "output" else _still_allowed(context, preview, recorder)
    return _answered(context, arguments, preview, commands, outcome)


def _still_allowed(context: CommandContext, preview: CommandPreview, recorder: Recorder) -> ChangeOutcome:
    """Commits it, but for what policy has come to forbid since somebody was asked: a yes lifts no deny."""
    decision = context.judge(preview.examined.changes, {})
    if decision.decision == "deny":
        return ChangeOutcome(failure=_refused(decision))
    return commit_preview(context, preview, recorder, None)


def commit_preview(
    context: CommandContext, preview: CommandPreview, recorder: Recorder, overlay: Overlay | None
) -> ChangeOutcome:
    """Makes the changes, all of them or none. What stands in the way is told beside what the command printed."""
    unkept = preview.examined.unkept
    if not preview.examined.steps:
        return ChangeOutcome(unkept=unkept)
    try:
        with context.exclusive():
            made = commit(
                context.workspace,
                recorder,
                preview.examined,
                overlay,
                session_id=context.session_id,
                call_id=context.tool_call_id,
                summary=require_command_fact(context).text[:_MAX_SUMMARY_CHARS],
                not_covered=preview.sandbox.not_covered,
            )
    except ToolError as error:
        return ChangeOutcome(failure=_in_words(context, error))
    except StoreError as error:
        if recorder.made_by(context.tool_call_id) is not None:
            raise  # whether it was made is settled by the files, once the store can be used again
        return ChangeOutcome(failure=build_storage_error(error))
    return ChangeOutcome(made=made, unkept=unkept)


def _in_words(context: CommandContext, error: ToolError) -> ToolError:
    """Where nobody saw a preview, none was out of date."""
    path = error.named_details.get("path")
    if context.preview_id is not None or error.code != "CONFLICT" or path is None:
        return error
    message = f"{path} was changed by somebody else while the command ran. Nothing was kept. Call again."
    return ToolError("CONFLICT", message, details=error.details)


def _judged(context: CommandContext, preview: CommandPreview, recorder: Recorder, overlay: Overlay) -> ChangeOutcome:
    if preview.ran.ending != "exit":
        return ChangeOutcome()
    decision = context.judge(preview.examined.changes, read_git_configs(context.workspace, overlay, preview.examined))
    if decision.decision == "allow":
        return commit_preview(context, preview, recorder, overlay)
    if decision.decision == "deny":
        return ChangeOutcome(failure=_refused(decision))
    try:
        sealed = store_preview(context, recorder, preview, overlay)
    except ToolError as error:
        return ChangeOutcome(failure=error)
    raise ApprovalNeededError(decision, to_permission_preview(preview, sealed))


def _refused(decision: Decision) -> ToolError:
    details = {"rule": decision.rule, "reason": decision.reason}
    if decision.code == "PERMISSION_DENIED":
        message = f"What it changed needs a person's yes: {decision.reason}. It was dropped. Do not repeat this call."
        return ToolError("PERMISSION_DENIED", message, details=details)
    forbidden = f"Rule {decision.rule} forbids what it changed: {decision.reason}. It was dropped."
    advice = "Do not try another way; say what you need it for."
    return ToolError(decision.code or "POLICY_DENIED", f"{forbidden} {advice}", details=details)


def _only_printed(preview: CommandPreview) -> ChangeOutcome:
    return ChangeOutcome(dropped=bool(preview.examined.steps))


def _answered(
    context: CommandContext,
    arguments: ExecArguments,
    preview: CommandPreview,
    commands: CommandEnvironment,
    outcome: ChangeOutcome,
) -> Output:
    fact = require_command_fact(context)
    todo = parse_fact(fact)
    limits = commands.limits(arguments.timeout_ms, restricted=context.limits.restricted)
    try:
        return build_exec_output(context, preview.ran, todo, limits, preview.sandbox, preview.blocked, outcome)
    except BaseException:
        remove_spill_files(preview.ran)
        raise
