"""demo: a scripted model fixes a failing test in a temporary folder, with the real loop, tools, sandbox and record."""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import redirect_stderr

from handrail.agent.loop import Agent
from handrail.agent.turn import Turn
from handrail.async_rail import AsyncHandrail
from handrail.cli.demonstration.afterwards import show_afterwards
from handrail.cli.demonstration.checks import Checks, Record
from handrail.cli.demonstration.folder import python_places, sample_folder
from handrail.cli.demonstration.sample import TASK
from handrail.cli.demonstration.script import scripted_model
from handrail.cli.demonstration.stand_in import StandIn
from handrail.cli.exits import FAILED, OK
from handrail.cli.output import note, warn
from handrail.cli.running.companions import with_companions
from handrail.cli.running.ending import ending_lines
from handrail.cli.running.form import form_of
from handrail.cli.running.tally import Tally
from handrail.cli.running.view import View
from handrail.protocol.decision import LAYERED
from handrail.settings import Loaded, load


def run(options: Namespace) -> int:
    """Plays the demo; exit 1 if a check fails."""
    return play(options)


def play(options: Namespace, flags: Mapping[str, object] | None = None) -> int:
    """Plays it, with settings of its own and these."""
    import asyncio  # noqa: PLC0415  help needs no loop

    checks = Checks()
    with redirect_stderr(sys.stdout), sample_folder():
        note("handrail demo: the model is scripted, all else is real. No key is used, nothing of yours is touched.")
        note(f'\n$ handrail run "{TASK}"')
        variables, toolchains = python_places()
        loaded = with_companions(load(os.environ, {"sandbox.toolchains": toolchains or None, **(flags or {})}))
        record = asyncio.run(_play(options, loaded, variables, checks))
        edit = next((one.meta.undo for one in record.of("edit")), None)
        show_afterwards(loaded, variables, checks, edit)
        for what in checks.wrong:
            warn(f"ERR not as it should be: {what}")
        if not checks.wrong:
            note("\nThat was the demo; its folder is gone. In a project of yours: handrail run 'what is to be done'")
    return FAILED if checks.wrong else OK


async def _play(options: Namespace, loaded: Loaded, variables: dict[str, str] | None, checks: Checks) -> Record:
    form, model = form_of(options), scripted_model()
    async with AsyncHandrail(".", session="demo", mode="ask", settings=loaded, variables=variables) as rail:
        view, tally, record = View(options, form, model.name), Tally(), Record()
        person = StandIn(rail, view, plain=options.plain)
        for listener in (tally.add, record.add, view.show):
            rail.subscribe(listener)
        begun = time.monotonic()
        turn: Turn = await Agent(rail, model, person=person).run(TASK)
        view.end()
        checks.look_at(turn, record, person.seen)
        for line in ending_lines(turn, tally, time.monotonic() - begun, (), form, here=""):
            note(line)
        tiers = [one.meta.sandbox.tier for one in record.of("exec") if one.meta.sandbox is not None]
        if min(tiers, default=0) < LAYERED:
            note("Commands have no throw-away copy on this machine, so they were not tried first: handrail doctor.")
        return record
