"""Runs a command for exec: in a layer, on the real tree, or beyond its call."""

from handrail.changes.recorder import Recorder
from handrail.policy.confinement import Runnable, runnable
from handrail.process.ran import Ran
from handrail.sandbox.confinement import Confinement
from handrail.tools.commands import Commands
from handrail.tools.confirming import confined
from handrail.tools.contract import Background, CommandContext, Output
from handrail.tools.exec import ExecArguments
from handrail.tools.exec_answer import answer_of
from handrail.tools.running import (
    Confirm,
    Went,
    check_ran,
    command_of,
    folder_of,
    launch_of,
    remove_printed,
    run_command,
    updates_of,
)
from handrail.tools.sandbox_words import sandbox_of


def execute(
    context: CommandContext, arguments: ExecArguments, commands: Commands, background: Background, recorder: Recorder
) -> Output:
    """Runs the command, and says how it went, or what goes on."""
    if context.sealed is not None:
        from handrail.tools.layered import keep_sealed  # noqa: PLC0415  few commands were tried before

        return keep_sealed(context, arguments, context.sealed, commands, recorder)
    fact = command_of(context)
    todo = runnable(fact.text, fact.cwd, fact.there)
    beyond = arguments.background or arguments.yield_ms is not None
    if not beyond and (fact.layered or todo.proven):
        return _execute_confirmed(context, arguments, todo, commands, recorder)
    confinement = commands.confinement(context, folder_of(context, fact.cwd), arguments.timeout_ms, todo)
    if arguments.yield_ms is not None and fact.layered and not todo.proven:
        from handrail.tools.yielding import execute_yielding  # noqa: PLC0415  few commands go on

        return execute_yielding(context, arguments, todo, confinement, commands, background, recorder)
    if beyond:
        return _execute_beyond(context, arguments, todo, confinement, commands, background)
    from handrail.tools.snapshotting import execute_watched  # noqa: PLC0415  where there is no layer

    return execute_watched(context, todo, confinement, commands, recorder)


def _execute_confirmed(
    context: CommandContext, arguments: ExecArguments, todo: Runnable, commands: Commands, recorder: Recorder
) -> Output:
    """Of one that ends with its call, and changes nothing of the real tree while it runs."""

    def work(confinement: Confinement, confirm: Confirm | None) -> Output:
        if todo.proven:
            went = run_command(context, todo, confinement, commands, confirm=confirm)
            return _answered(context, todo, went, commands)
        from handrail.tools.layered import execute_layered  # noqa: PLC0415  most commands only look

        return execute_layered(context, arguments, todo, confinement, commands, recorder, confirm)

    return confined(context, todo, arguments.timeout_ms, commands, work)


def _execute_beyond(
    context: CommandContext,
    arguments: ExecArguments,
    todo: Runnable,
    confinement: Confinement,
    commands: Commands,
    background: Background,
) -> Output:
    """Of a command that may go on after its call."""
    from handrail.tools.hand_over import handed_over  # noqa: PLC0415  few commands go on
    from handrail.tools.keeping import Keeping  # noqa: PLC0415

    keeping = Keeping(context, arguments, background, commands.spill_folder)
    confinement = keeping.confine(confinement, commands.hosts_open_to(context, todo))
    ran = keeping.run(launch_of(context, todo, confinement, commands), confinement.limits, updates_of(context))
    if not isinstance(ran, Ran):
        used = sandbox_of(context, confinement, commands)
        return handed_over(context, ran, used, waited=arguments.yield_ms is not None)
    check_ran(ran, commands)
    return _answered(context, todo, keeping.went(ran, confinement), commands)


def _answered(context: CommandContext, todo: Runnable, went: Went, commands: Commands) -> Output:
    """How it went on the real tree, and what it tried to reach."""
    try:
        used = sandbox_of(context, went.confinement, commands)
        return answer_of(context, went.ran, todo, went.confinement.limits, used, went.blocked)
    except BaseException:
        remove_printed(went.ran)
        raise
