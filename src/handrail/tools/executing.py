"""Runs a command for exec: confined, watched, and told."""

import contextlib
import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.changes.recorder import Recorder
from handrail.policy.confinement import Runnable, runnable
from handrail.process.cleaning import cleaned
from handrail.process.ran import Ran
from handrail.process.running import run_launch
from handrail.process.updates import Update, Updates
from handrail.protocol.decision import CommandFact
from handrail.protocol.error import StoreError, ToolError
from handrail.protocol.result import SandboxUsed
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.launch import Launch
from handrail.tools.commands import Commands
from handrail.tools.contract import Background, Context, Output
from handrail.tools.exec import ExecArguments
from handrail.tools.exec_answer import answer_of

if TYPE_CHECKING:
    from handrail.tools.network import Tried


def execute(
    context: Context, arguments: ExecArguments, commands: Commands, background: Background, recorder: Recorder
) -> Output:
    """Runs the command, and says how it went, or what goes on."""
    fact = command_of(context)
    todo = runnable(fact.text, fact.cwd, fact.there)
    if context.sealed is not None:
        from handrail.tools.trying import keep_sealed  # noqa: PLC0415  few commands were tried before

        return keep_sealed(context, context.sealed, recorder)
    confinement = commands.confinement(context, folder_of(context, fact.cwd), arguments.timeout_ms, todo)
    hosts = commands.hosts_open_to(context, todo)
    if arguments.background or arguments.yield_ms is not None:
        from handrail.tools.keeping import Keeping  # noqa: PLC0415  few commands go on

        keeping = Keeping(context, arguments, background, commands.spill_folder)
        confinement = keeping.confine(confinement, hosts)
        ran = keeping.run(_launch(context, todo, confinement, commands), confinement.limits, updates_of(context))
        if not isinstance(ran, Ran):
            from handrail.tools.hand_over import handed_over  # noqa: PLC0415

            return handed_over(context, ran, _used(confinement, commands), waited=arguments.yield_ms is not None)
        return _answer(context, ran, todo, confinement, commands, keeping.tried)
    if fact.tier >= 3 and not todo.proven:
        from handrail.tools.trying import execute_layered  # noqa: PLC0415  most commands only look

        return execute_layered(context, todo, confinement, commands, recorder)
    if hosts:
        from handrail.tools.network import OpenNetwork, Tried  # noqa: PLC0415  few commands have one

        tried = Tried(context)
        with OpenNetwork(tried, hosts, commands.spill_folder) as network:
            confinement = network.confine(confinement)
            ran = _run(context, todo, confinement, commands)
        return _answer(context, ran, todo, confinement, commands, tried)
    return _answer(context, _run(context, todo, confinement, commands), todo, confinement, commands, None)


def _answer(
    context: Context,
    ran: Ran,
    todo: Runnable,
    confinement: Confinement,
    commands: Commands,
    tried: "Tried | None",
) -> Output:
    """How it went, and what it tried to reach."""
    if ran.ending == "failed":
        raise commands.sandbox.failed(_why_not(ran))
    if tried is not None:
        ran = replace(ran, warnings=(*ran.warnings, *tried.warnings))
    try:
        blocked = tried.told if tried is not None else ()
        return answer_of(context, ran, todo, confinement, _used(confinement, commands), blocked)
    except BaseException:
        _remove_printed(ran)
        raise


def _run(context: Context, todo: Runnable, confinement: Confinement, commands: Commands) -> Ran:
    folder = commands.spill_folder  # first: who has a launch must run it
    return run_launch(
        _launch(context, todo, confinement, commands),
        limits=confinement.limits,
        cancelled=context.cancelled,
        on_output=updates_of(context).feed,
        spill_folder=folder,
        two_pipes=context.limits.restricted,
    )


def _launch(context: Context, todo: Runnable, confinement: Confinement, commands: Commands) -> Launch:
    launch = commands.sandbox.launch(confinement, todo.text)
    if launch.tier < min(command_of(context).tier, 2):
        launch.close()
        message = "The sandbox that this was decided for does not work any more, and what is left confines less."
        raise ToolError("CONFLICT", f"{message} Nothing was run. Call again.")
    return launch


def updates_of(context: Context) -> Updates:
    """What tells live views how it goes on."""

    def tell(update: Update) -> None:
        with contextlib.suppress(StoreError):  # nobody has to see how it goes on
            context.metadata(output=update.text, **({"skipped": update.skipped} if update.skipped else {}))

    return Updates(tell)


def command_of(context: Context) -> CommandFact:
    """What was judged."""
    fact = context.facts.command
    if fact is None:
        raise AssertionError("a command was judged before it runs")
    return fact


def folder_of(context: Context, cwd: str) -> str:
    """Where it starts, without the links on the way."""
    fact = context.workspace.look(cwd, "read")
    if fact.real is None or fact.kind != "directory":
        raise ToolError("CONFLICT", f"The folder {cwd[:200]} was moved or removed a moment ago. Nothing was run.")
    return fact.real


def _used(confinement: Confinement, commands: Commands) -> SandboxUsed:
    report = commands.sandbox.report()
    read_only = confinement.only_looks and report.tier > 0
    return SandboxUsed(
        tier=report.tier,
        net="listed" if confinement.proxy else "none" if report.tier > 0 else "open",
        hosts=confinement.listed,
        undo="read-only" if read_only else "none",
        hidden=len(confinement.hidden_files) + len(confinement.hidden_folders) if report.tier > 0 else 0,
        gaps=report.gaps,
        per_process=report.per_process,
        tree=report.tree,
    )


def _why_not(ran: Ran) -> str:
    """Why the sandbox could not be made, without the paths that bubblewrap names."""
    lines = cleaned(ran.output.head).strip().splitlines()
    return lines[-1].rpartition(": ")[2] if lines else ""


def _remove_printed(ran: Ran) -> None:
    for printed in (ran.output, ran.errors):
        if printed is not None and printed.spilled is not None:
            with contextlib.suppress(OSError):
                os.unlink(printed.spilled)
