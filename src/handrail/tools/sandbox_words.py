"""How a command was confined, as its result tells it."""

from msgspec.structs import replace

from handrail.protocol.decision import CommandFact
from handrail.protocol.result import SandboxUsed
from handrail.sandbox.confinement import Confinement
from handrail.tools.commands import Commands
from handrail.tools.contract import CommandContext
from handrail.tools.running import command_of

_GOES_ON = "it may go on after its call, on the real tree"


def sandbox_of(context: CommandContext, confinement: Confinement, commands: Commands) -> SandboxUsed:
    """Of a command that ran on the real tree."""
    used = _used(confinement, commands)
    if confinement.only_looks and used.net != "open":
        return replace(used, undo="read-only")
    return replace(used, no_layer=_why_no_layer(context, command_of(context), commands))


def _used(confinement: Confinement, commands: Commands) -> SandboxUsed:
    """Whatever became of what it changed."""
    report = commands.sandbox.report()
    confined = report.tier > 0
    return SandboxUsed(
        tier=min(report.tier, 2),
        net="listed" if confinement.proxy else "none" if confined else "open",
        hosts=confinement.listed,
        undo="none",
        hidden=len(confinement.hidden_files) + len(confinement.hidden_folders) if confined else 0,
        gaps=report.gaps,
        per_process=report.per_process,
        tree=report.tree,
    )


def layered_sandbox_of(confinement: Confinement, commands: Commands, reached: tuple[str, ...]) -> SandboxUsed:
    """Of a command that ran in a layer; `reached`: the hosts that it told something."""
    sent = (f"what was sent to {', '.join(reached)}",) if reached else ()
    used = _used(confinement, commands)
    gaps = (*used.gaps, *commands.sandbox.gaps_of_layer(confinement.writable))
    return replace(used, tier=3, undo="layer", not_covered=sent, gaps=gaps)


def _why_no_layer(context: CommandContext, fact: CommandFact, commands: Commands) -> str:
    if fact.background:
        return _GOES_ON
    return commands.why_no_layer(context.workspace.roots) or "it was decided for a sandbox without one"
