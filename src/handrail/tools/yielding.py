"""Runs a command in a layer that may go on after its call: then its layer goes on with it, until it ends."""

import os

from handrail.changes.recorder import Recorder
from handrail.policy.confinement import Runnable
from handrail.process.ran import Ran
from handrail.process.sessions.layers import Yielded
from handrail.process.sessions.sessions import new_name
from handrail.protocol.result import SandboxUsed
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.layer.layer import Layer
from handrail.sandbox.layer.owner import give_to
from handrail.tools.commands import Commands
from handrail.tools.contract import Background, CommandContext, Output
from handrail.tools.exec import ExecArguments
from handrail.tools.hand_over import handed_over
from handrail.tools.keeping import Keeping
from handrail.tools.layered import conclude
from handrail.tools.running import check_ran, launch_of, updates_of, watch_disk
from handrail.tools.sandbox_words import layered_sandbox_of
from handrail.tools.trying import layer_over, trial_of


def execute_yielding(
    context: CommandContext,
    arguments: ExecArguments,
    todo: Runnable,
    confinement: Confinement,
    commands: Commands,
    background: Background,
    recorder: Recorder,
) -> Output:
    """How it went, judged and kept, where it ended in time; else what goes on, and is judged and kept when it ends."""
    keeping = Keeping(context, arguments, background, commands.spill_folder)
    hosts = commands.hosts_open_to(context, todo)
    confinement = keeping.confine(confinement, hosts)
    used = layered_sandbox_of(confinement, commands, hosts)
    with layer_over(context, confinement, commands) as layer:
        confinement = watch_disk(context, confinement, layer)
        _give(layer, keeping, context, background, used)
        launch = launch_of(context, todo, confinement, commands, layer)
        ran = keeping.run(launch, confinement.limits, updates_of(context))
        if isinstance(ran, Ran):
            check_ran(ran, commands)
            trial = trial_of(context, keeping.went(ran, confinement), commands, layer)
            return conclude(context, arguments, trial, commands, recorder, layer)
        layer.let_go()
    return handed_over(context, ran, used, waited=True)


def _give(layer: Layer, keeping: Keeping, context: CommandContext, background: Background, used: SandboxUsed) -> None:
    """Whoever is killed from here on leaves no layer that nobody sees to."""
    keeping.name = new_name()
    give_to(layer, os.path.join(background.folder, keeping.name))
    keeping.layer = Yielded(layer.folder, context.tool_call_id, used)
