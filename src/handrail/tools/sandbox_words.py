"""How a command was confined, as its result tells it."""

from msgspec.structs import replace

from handrail.protocol.decisions import CommandFact
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.confinement import SandboxProfile
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import CommandContext
from handrail.tools.running import require_command_fact

_GOES_ON = "it may go on after its call, on the real tree"


def build_sandbox_used(context: CommandContext, profile: SandboxProfile, commands: CommandEnvironment) -> SandboxUsed:
    """Of a command that ran on the real tree."""
    used = _used(profile, commands)
    if profile.is_read_only and used.net != "open":
        return replace(used, undo="read-only")
    return replace(used, no_layer=_why_no_layer(context, require_command_fact(context), commands))


def _used(profile: SandboxProfile, commands: CommandEnvironment) -> SandboxUsed:
    """Whatever became of what it changed."""
    report = commands.sandbox.report()
    confined = report.tier > 0
    return SandboxUsed(
        tier=min(report.tier, 2),
        net="listed" if profile.proxy else "none" if confined else "open",
        hosts=profile.listed,
        undo="none",
        hidden=len(profile.hidden_files) + len(profile.hidden_folders) if confined else 0,
        gaps=report.gaps,
        per_process=report.per_process,
        tree=report.tree,
    )


def build_overlay_sandbox_used(
    profile: SandboxProfile, commands: CommandEnvironment, reached: tuple[str, ...]
) -> SandboxUsed:
    """Of a command that ran in an overlay; `reached`: the hosts that it told something."""
    sent = (f"what was sent to {', '.join(reached)}",) if reached else ()
    used = _used(profile, commands)
    gaps = (*used.gaps, *commands.sandbox.list_overlay_gaps(profile.writable))
    return replace(used, tier=3, undo="layer", not_covered=sent, gaps=gaps)


def _why_no_layer(context: CommandContext, fact: CommandFact, commands: CommandEnvironment) -> str:
    if fact.background:
        return _GOES_ON
    return commands.why_no_layer(context.workspace.roots) or "it was decided for a sandbox without one"
