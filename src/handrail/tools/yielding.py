"""Runs a command that may outlive its call in an overlay: then the overlay lives on with it, until it ends."""

import os

from handrail.changes.recorder import Recorder
from handrail.policy.parse import ParsedCommand
from handrail.process.ran import CommandResult
from handrail.process.sessions.layers import OverlayNote
from handrail.process.sessions.sessions import generate_id
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.layer.layer import Overlay
from handrail.sandbox.layer.owner import assign_owner
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import Background, CommandContext, Output
from handrail.tools.exec_spec import ExecArguments
from handrail.tools.hand_over import build_handover_output
from handrail.tools.keeping import DetachedRun
from handrail.tools.layered import judge_and_commit
from handrail.tools.running import build_updates, check_ran, prepare_launch, watch_disk
from handrail.tools.sandbox_words import build_overlay_sandbox_used
from handrail.tools.trying import build_run_preview, open_overlay


def execute_detachable(
    context: CommandContext,
    arguments: ExecArguments,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    background: Background,
    recorder: Recorder,
) -> Output:
    """How it went, judged and committed, if it ended in time; else what goes on: then that happens when it ends."""
    keeping = DetachedRun(context, arguments, background, commands.spill_folder)
    hosts = commands.hosts_open_to(context, todo)
    profile = keeping.confine(profile, hosts)
    used = build_overlay_sandbox_used(profile, commands, hosts)
    with open_overlay(context, profile, commands) as overlay:
        profile = watch_disk(context, profile, overlay)
        _give(overlay, keeping, context, background, used)
        launch = prepare_launch(context, todo, profile, commands, overlay)
        ran = keeping.run(launch, profile.limits, build_updates(context))
        if isinstance(ran, CommandResult):
            check_ran(ran, commands)
            preview = build_run_preview(context, keeping.to_networked_run(ran, profile), commands, overlay)
            return judge_and_commit(context, arguments, preview, commands, recorder, overlay)
        overlay.release()
    return build_handover_output(context, ran, used, waited=True)


def _give(
    overlay: Overlay, keeping: DetachedRun, context: CommandContext, background: Background, used: SandboxUsed
) -> None:
    """Whoever is killed from here on leaves no overlay without an owner."""
    keeping.name = generate_id()
    assign_owner(overlay, os.path.join(background.folder, keeping.name))
    keeping.layer = OverlayNote(overlay.folder, context.tool_call_id, used)
