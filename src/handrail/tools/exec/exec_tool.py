"""The tool exec, which picks the way of a command.

A command that policy has proven to only read runs on the real tree. Any other command runs in an overlay, and its
changes are committed when policy or a person allows them. Without overlays it runs on the real tree with a snapshot. A
command with `background` or `yieldMs` may outlive its call. If a person approved a preview, that is committed, and
nothing runs.
"""

from collections.abc import Callable

from handrail.changes.recorder import Recorder
from handrail.protocol.changes import Preview
from handrail.protocol.errors import ToolError
from handrail.tools.command_environment import CommandEnvironment
from handrail.tools.exec.result import build_real_tree_output
from handrail.tools.exec.run import CommandRun, run_command
from handrail.tools.exec.spec import EXEC, ExecArguments
from handrail.tools.tool import Background, CommandContext, CommandUse, Output, Tool, Touches

_MAX_COMMAND_BYTES = 100_000
"""Of a command: the system takes little more in one piece."""


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
        return _load_overlay().preview_command(build_run(context, arguments))

    return Tool(EXEC, run, _declare_touches, preview, context=CommandContext)


def _declare_touches(arguments: ExecArguments) -> Touches:
    command = arguments.command
    if not command.strip():
        raise ToolError("INVALID_ARGUMENT", "exec: command is blank. Nothing was run.")
    if "\0" in command:
        raise ToolError("INVALID_ARGUMENT", "exec: command has a NUL character, which is not allowed. Nothing was run.")
    if (size := len(command.encode("utf-8", "surrogatepass"))) > _MAX_COMMAND_BYTES:
        message = f"exec: the command is {size:,} bytes long, and {_MAX_COMMAND_BYTES:,} is the most that can be run."
        raise ToolError("LIMIT_EXCEEDED", f"{message} Write it to a file, and run that. Nothing was run.")
    return Touches(command=CommandUse(command, arguments.cwd, arguments.background, arguments.yield_ms is not None))


def execute(run: CommandRun) -> Output:
    """Runs a command in the way that was decided for it."""
    if run.context.preview_id is not None:
        return _load_overlay().commit_stored_preview(run, run.context.preview_id)
    if run.arguments.background or run.arguments.yield_ms is not None:
        from handrail.tools.exec.detached import execute_detached  # noqa: PLC0415  most commands end with their call

        return execute_detached(run)
    if run.is_proven:
        return build_real_tree_output(run, run_command(run, run.profile, joins=True))
    if run.fact.has_overlay:
        return _load_overlay().execute_in_overlay(run)
    from handrail.tools.exec.snapshot import execute_with_snapshot  # noqa: PLC0415  most machines have overlays

    return execute_with_snapshot(run)


def _load_overlay():  # the type is that of the module
    from handrail.tools.exec import overlay  # noqa: PLC0415  most commands only read

    return overlay
