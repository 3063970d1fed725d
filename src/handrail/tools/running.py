"""Runs a command to its end: confined, watched and told of, with what is open to it of the network."""

import contextlib
import os
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from handrail.policy.confinement import Runnable
from handrail.process.cleaning import cleaned
from handrail.process.ran import Ran
from handrail.process.running import run_launch
from handrail.process.updates import Update, Updates
from handrail.protocol.decision import CommandFact
from handrail.protocol.error import StoreError, ToolError
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.launch import Launch
from handrail.sandbox.layer.layer import Layer
from handrail.sandbox.layer.mounting import NOT_MOUNTED
from handrail.tools.commands import Commands
from handrail.tools.contract import CommandContext

Confirm = Callable[[], None]
"""Looks whether a command may begin, while its sandbox is made; raises where it may not."""
_WEAKER = "The sandbox that this was decided for does not work any more, and what is left confines less."


class Went(msgspec.Struct, frozen=True, kw_only=True):
    """How a command went, and what it had of the network."""

    ran: Ran
    confinement: Confinement
    blocked: tuple[str, ...] = ()
    """What it tried to reach and did not, in words."""
    reached: tuple[str, ...] = ()
    """What it reached: `example.org:443`."""


def run_command(
    context: CommandContext,
    todo: Runnable,
    confinement: Confinement,
    commands: Commands,
    *,
    hosts: tuple[str, ...] = (),
    layer: Layer | None = None,
    confirm: Confirm | None = None,
) -> Went:
    """Runs it, under a layer where there is one, once `confirm` agrees. ToolError where it could not be started as it
    must be."""
    if not hosts:
        return Went(ran=_run(context, todo, confinement, commands, layer, confirm), confinement=confinement)
    if confirm is not None:
        confirm()
    from handrail.tools.network import OpenNetwork, Tried  # noqa: PLC0415  few commands have one

    tried = Tried(context)
    with OpenNetwork(tried, hosts, commands.spill_folder) as network:
        confinement = network.confine(confinement)
        ran = _run(context, todo, confinement, commands, layer)
    ran = replace(ran, warnings=(*ran.warnings, *tried.warnings))
    return Went(ran=ran, confinement=confinement, blocked=tried.told, reached=tried.reached)


def _run(
    context: CommandContext,
    todo: Runnable,
    confinement: Confinement,
    commands: Commands,
    layer: Layer | None,
    confirm: Confirm | None = None,
) -> Ran:
    folder = commands.spill_folder  # first: who has a launch must run it
    ran = run_launch(
        launch_of(context, todo, confinement, commands, layer, waits=confirm is not None),
        limits=confinement.limits,
        cancelled=context.cancelled,
        on_output=updates_of(context).feed,
        spill_folder=folder,
        two_pipes=context.limits.restricted,
        confirm=confirm,
    )
    check_ran(ran, commands, layer)
    return ran


def check_ran(ran: Ran, commands: Commands, layer: Layer | None = None) -> None:
    """ToolError where the sandbox could not be made, so that the command never ran."""
    if ran.ending == "failed":
        remove_printed(ran)
        raise commands.sandbox.failed(_why_not(ran) if layer is None else cleaned(ran.output.head), layer)


def watch_disk(context: CommandContext, confinement: Confinement, layer: Layer, most: int | None = None) -> Confinement:
    """The confinement of a command that is stopped if it writes more than `most` to its layer. Without `most` the limit
    is its own, unless somebody approved the command or its mode allows bulk changes."""
    if most is None and (context.answered or context.limits.bulk):
        return confinement
    limits, uppers = confinement.limits, tuple(over.upper for over in layer.overlaid)
    return replace(confinement, limits=replace(limits, disk=limits.disk if most is None else most, uppers=uppers))


def launch_of(
    context: CommandContext,
    todo: Runnable,
    confinement: Confinement,
    commands: Commands,
    layer: Layer | None = None,
    *,
    waits: bool = False,
) -> Launch:
    """The command, ready to be started in no weaker a sandbox than it was decided for. `waits`: it may have to be let
    begin."""
    launch = commands.sandbox.launch(confinement, todo.text, layer, waits=waits)
    if launch.tier < min(command_of(context).tier, 2):
        launch.close()
        raise weaker_sandbox()
    return launch


def weaker_sandbox() -> ToolError:
    """The refusal of a command that was decided for a better sandbox than there is by now."""
    return ToolError("CONFLICT", f"{_WEAKER} Nothing was run. Call again.")


def updates_of(context: CommandContext) -> Updates:
    """What tells live views how it goes on."""

    def tell(update: Update) -> None:
        with contextlib.suppress(StoreError):  # nobody has to see how it goes on
            context.metadata(output=update.text, **({"skipped": update.skipped} if update.skipped else {}))

    return Updates(tell)


def command_of(context: CommandContext) -> CommandFact:
    """What was judged."""
    fact = context.facts.command
    if fact is None:
        raise AssertionError("a command was judged before it runs")
    return fact


def folder_of(context: CommandContext, cwd: str) -> str:
    """Where it starts, without the links on the way."""
    fact = context.workspace.look(cwd, "read")
    if fact.real is None or fact.kind != "directory":
        raise ToolError("CONFLICT", f"The folder {cwd[:200]} was moved or removed a moment ago. Nothing was run.")
    return fact.real


def remove_printed(ran: Ran) -> None:
    """Removes the files of what it printed, where nobody will ask for them."""
    for printed in (ran.output, ran.errors):
        if printed is not None and printed.spilled is not None:
            with contextlib.suppress(OSError):
                os.unlink(printed.spilled)


def _why_not(ran: Ran) -> str:
    """Why the sandbox could not be made, without the paths that bubblewrap names; of a layer, all that was said."""
    printed = cleaned(ran.output.head if ran.errors is None else ran.output.head + ran.errors.head).strip()
    if NOT_MOUNTED in printed:
        return printed
    return printed.rpartition("\n")[2].rpartition(": ")[2]
