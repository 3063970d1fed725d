"""Runs a command to its end: confined, watched and told of, with what is open to it of the network."""

import contextlib
import os
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from handrail.policy.parse import ParsedCommand
from handrail.process.cleaning import clean_output
from handrail.process.ran import CommandResult
from handrail.process.running import run_launch
from handrail.process.updates import Update, Updates
from handrail.protocol.decisions import CommandFact
from handrail.protocol.errors import StoreError, ToolError
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.launch import Launch
from handrail.sandbox.layer.layer import Overlay
from handrail.sandbox.layer.mounting import NOT_MOUNTED
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import CommandContext
from handrail.workspace.facts import build_command_fact

Confirm = Callable[[], None]
"""Looks whether a command may begin, while its sandbox is made; raises where it may not."""
_WEAKER = "The sandbox that this was decided for does not work any more, and what is left confines less."


class NetworkedRun(msgspec.Struct, frozen=True, kw_only=True):
    """How a command went, and what it had of the network."""

    ran: CommandResult
    profile: SandboxProfile
    blocked: tuple[str, ...] = ()
    """What it tried to reach and did not, in words."""
    reached: tuple[str, ...] = ()
    """What it reached: `example.org:443`."""


def run_command(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    *,
    hosts: tuple[str, ...] = (),
    overlay: Overlay | None = None,
    confirm: Confirm | None = None,
) -> NetworkedRun:
    """Runs it, under its overlay if it has one, once `confirm` agrees. ToolError if it could not be started as it must
    be."""
    if not hosts:
        return NetworkedRun(ran=_run(context, todo, profile, commands, overlay, confirm), profile=profile)
    if confirm is not None:
        confirm()
    from handrail.tools.network import ConnectionLog, OpenNetwork  # noqa: PLC0415  few commands have one

    tried = ConnectionLog(context)
    with OpenNetwork(tried, hosts, commands.spill_folder) as network:
        profile = network.confine(profile)
        ran = _run(context, todo, profile, commands, overlay)
    ran = replace(ran, warnings=(*ran.warnings, *tried.warnings))
    return NetworkedRun(ran=ran, profile=profile, blocked=tried.blocked_messages, reached=tried.reached)


def _run(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    overlay: Overlay | None,
    confirm: Confirm | None = None,
) -> CommandResult:
    folder = commands.spill_folder  # first: who has a launch must run it
    ran = run_launch(
        prepare_launch(context, todo, profile, commands, overlay, waits=confirm is not None),
        limits=profile.limits,
        cancelled=context.cancelled,
        on_output=build_updates(context).feed,
        spill_folder=folder,
        two_pipes=context.limits.restricted,
        confirm=confirm,
    )
    check_ran(ran, commands, overlay)
    return ran


def check_ran(ran: CommandResult, commands: CommandEnvironment, overlay: Overlay | None = None) -> None:
    """ToolError where the sandbox could not be made, so that the command never ran."""
    if ran.ending == "failed":
        remove_spill_files(ran)
        raise commands.sandbox.failed(_why_not(ran) if overlay is None else clean_output(ran.output.head), overlay)


def watch_disk(
    context: CommandContext, profile: SandboxProfile, overlay: Overlay, most: int | None = None
) -> SandboxProfile:
    """The profile of a command that is stopped if it writes more than `most` to its overlay. Without `most` the limit
    is its own, unless somebody approved the command or its mode allows bulk changes."""
    if most is None and (context.answered or context.limits.bulk):
        return profile
    limits, uppers = profile.limits, tuple(over.upper for over in overlay.overlaid)
    return replace(profile, limits=replace(limits, disk=limits.disk if most is None else most, uppers=uppers))


def prepare_launch(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    overlay: Overlay | None = None,
    *,
    waits: bool = False,
) -> Launch:
    """The command, ready to be started in no weaker a sandbox than it was decided for. `waits`: it may have to be let
    begin."""
    launch = commands.sandbox.launch(profile, todo.bash_text, overlay, waits=waits)
    if launch.tier < min(require_command_fact(context).tier, 2):
        launch.close()
        raise build_weaker_sandbox_error()
    return launch


def build_weaker_sandbox_error() -> ToolError:
    """The refusal of a command that was decided for a better sandbox than there is by now."""
    return ToolError("CONFLICT", f"{_WEAKER} Nothing was run. Call again.")


def build_updates(context: CommandContext) -> Updates:
    """What tells live views how it goes on."""

    def tell(update: Update) -> None:
        with contextlib.suppress(StoreError):  # nobody has to see how it goes on
            context.metadata(output=update.text, **({"skipped": update.skipped} if update.skipped else {}))

    return Updates(tell)


def require_command_fact(context: CommandContext) -> CommandFact:
    """What was judged."""
    fact = context.facts.command
    if fact is None:
        raise AssertionError("a command was judged before it runs")
    return fact


def resolve_cwd(context: CommandContext, cwd: str) -> str:
    """Where it starts, without the links on the way."""
    fact = build_command_fact(context.workspace, cwd, "read")
    if fact.real is None or fact.kind != "directory":
        raise ToolError("CONFLICT", f"The folder {cwd[:200]} was moved or removed a moment ago. Nothing was run.")
    return fact.real


def remove_spill_files(ran: CommandResult) -> None:
    """Removes the files of what it printed, where nobody will ask for them."""
    for printed in (ran.output, ran.errors):
        if printed is not None and printed.spilled is not None:
            with contextlib.suppress(OSError):
                os.unlink(printed.spilled)


def _why_not(ran: CommandResult) -> str:
    """Why the sandbox could not be made, without the paths that bubblewrap names; of an overlay, all that was said."""
    printed = clean_output(ran.output.head if ran.errors is None else ran.output.head + ran.errors.head).strip()
    if NOT_MOUNTED in printed:
        return printed
    return printed.rpartition("\n")[2].rpartition(": ")[2]
