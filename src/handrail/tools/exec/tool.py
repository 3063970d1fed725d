"""The tool exec."""

from collections.abc import Callable

from handrail.changes.recorder import Recorder
from handrail.policy.parse import ParsedCommand, parse_fact
from handrail.process.result import CommandResult
from handrail.protocol.permissions import Preview
from handrail.sandbox.profile import SandboxProfile
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.exec.result import build_exec_output, build_sandbox_used
from handrail.tools.exec.run import (
    NetworkedRun,
    build_updates,
    check_ran,
    prepare_launch,
    remove_spill_files,
    require_command_fact,
    resolve_cwd,
    run_command,
)
from handrail.tools.exec.spec import EXEC, ExecArguments, find_exec_touches
from handrail.tools.tool import Background, CommandContext, Output, Tool


def build_exec_tool(commands: CommandEnvironment, background: Background, recorder: Callable[[], Recorder]) -> Tool:
    """The tool exec."""

    def run(context: CommandContext, arguments: ExecArguments) -> Output:
        return execute(context, arguments, commands, background, recorder())

    def preview(context: CommandContext, arguments: ExecArguments) -> Preview:
        from handrail.tools.exec.overlay import preview_command  # noqa: PLC0415  most commands have no preview

        return preview_command(context, arguments, commands, recorder())

    return Tool(EXEC, run, find_exec_touches, preview, context=CommandContext)


def execute(
    context: CommandContext,
    arguments: ExecArguments,
    commands: CommandEnvironment,
    background: Background,
    recorder: Recorder,
) -> Output:
    """Runs the command, and says how it went, or what goes on."""
    if context.preview_id is not None:
        from handrail.tools.exec.overlay import commit_stored_preview  # noqa: PLC0415  few commands were tried before

        return commit_stored_preview(context, arguments, context.preview_id, commands, recorder)
    fact = require_command_fact(context)
    todo = parse_fact(fact)
    beyond = arguments.background or arguments.yield_ms is not None
    profile = commands.build_profile(context, resolve_cwd(context, fact.cwd), arguments.timeout_ms, todo)
    if arguments.yield_ms is not None and fact.has_overlay and not todo.is_read_only:
        from handrail.tools.exec.detached import execute_detachable  # noqa: PLC0415  few commands go on

        return execute_detachable(context, arguments, todo, profile, commands, background, recorder)
    if beyond:
        return _execute_beyond(context, arguments, todo, profile, commands, background)
    if todo.is_read_only:
        return _answered(context, todo, run_command(context, todo, profile, commands), commands)
    if fact.has_overlay:
        from handrail.tools.exec.overlay import execute_in_overlay  # noqa: PLC0415  most commands only look

        return execute_in_overlay(context, arguments, todo, profile, commands, recorder)
    from handrail.tools.exec.snapshot import execute_with_snapshot  # noqa: PLC0415  where there is no overlay

    return execute_with_snapshot(context, todo, profile, commands, recorder)


def _execute_beyond(
    context: CommandContext,
    arguments: ExecArguments,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    background: Background,
) -> Output:
    """Of a command that may go on after its call."""
    from handrail.tools.exec.detached import DetachedRun, build_handover_output  # noqa: PLC0415  few commands go on

    keeping = DetachedRun(context, arguments, background, commands.spill_folder)
    profile = keeping.confine(profile, commands.hosts_open_to(context, todo))
    ran = keeping.run(prepare_launch(context, todo, profile, commands), profile.limits, build_updates(context))
    if not isinstance(ran, CommandResult):
        used = build_sandbox_used(context, profile, commands)
        return build_handover_output(context, ran, used, waited=arguments.yield_ms is not None)
    check_ran(ran, commands)
    return _answered(context, todo, keeping.to_networked_run(ran, profile), commands)


def _answered(context: CommandContext, todo: ParsedCommand, went: NetworkedRun, commands: CommandEnvironment) -> Output:
    """How it went on the real tree, and what it tried to reach."""
    try:
        used = build_sandbox_used(context, went.profile, commands)
        return build_exec_output(context, went.ran, todo, went.profile.limits, used, went.blocked)
    except BaseException:
        remove_spill_files(went.ran)
        raise
