"""The tool exec: the way of a command.

A command that policy has proven to only read runs on the real tree. Any other command runs in an overlay, and its
changes are committed when policy or a person allows them. Without overlays it runs on the real tree with a snapshot. A
command with `background` or `yieldMs` may outlive its call. If a person approved a preview, that is committed, and
nothing runs.
"""

from collections.abc import Callable

from handrail.changes.recorder import Recorder
from handrail.protocol.changes import Preview
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.exec.result import build_real_tree_output
from handrail.tools.exec.run import CommandRun, run_command
from handrail.tools.exec.spec import EXEC, ExecArguments, find_exec_touches
from handrail.tools.tool import Background, CommandContext, Output, Tool


def build_exec_tool(environment: CommandEnvironment, background: Background, recorder: Callable[[], Recorder]) -> Tool:
    def build_run(context: CommandContext, arguments: ExecArguments) -> CommandRun:
        return CommandRun(
            context=context,
            arguments=arguments,
            environment=environment,
            background=background,
            recorder=recorder(),
        )

    def run(context: CommandContext, arguments: ExecArguments) -> Output:
        return execute(build_run(context, arguments))

    def preview(context: CommandContext, arguments: ExecArguments) -> Preview:
        from handrail.tools.exec.overlay import preview_command  # noqa: PLC0415  few commands have a preview

        return preview_command(build_run(context, arguments))

    return Tool(EXEC, run, find_exec_touches, preview, context=CommandContext)


def execute(run: CommandRun) -> Output:
    """Runs a command in the way that was decided for it."""
    if run.context.preview_id is not None:
        from handrail.tools.exec.overlay import commit_stored_preview  # noqa: PLC0415  most commands only read

        return commit_stored_preview(run, run.context.preview_id)
    if run.arguments.background or run.arguments.yield_ms is not None:
        from handrail.tools.exec.detached import execute_detached  # noqa: PLC0415  as above

        return execute_detached(run)
    if run.is_proven:
        return build_real_tree_output(run, run_command(run, run.profile))
    if run.fact.has_overlay:
        from handrail.tools.exec.overlay import execute_in_overlay  # noqa: PLC0415  as above

        return execute_in_overlay(run)
    from handrail.tools.exec.snapshot import execute_with_snapshot  # noqa: PLC0415  as above

    return execute_with_snapshot(run)
