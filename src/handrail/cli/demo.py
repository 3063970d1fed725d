"""demo: a scripted model fixes a failing test in a temporary folder, with the real loop, tools, sandbox and record."""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import redirect_stderr
from functools import partial

from handrail.agent.loop import Agent, ask_in_turn
from handrail.agent.turn import Turn
from handrail.async_api import AsyncHandrail
from handrail.cli.demonstration.afterwards import show_afterwards
from handrail.cli.demonstration.checks import DemoChecks, DemoResults
from handrail.cli.demonstration.folder import find_python, open_sample_folder
from handrail.cli.demonstration.sample import TASK
from handrail.cli.demonstration.script import build_scripted_model
from handrail.cli.demonstration.stand_in import AutoApprover
from handrail.cli.exits import FAILED, OK
from handrail.cli.output import print_note, warn
from handrail.cli.running.companions import enable_companion_tools
from handrail.cli.running.ending import render_ending
from handrail.cli.running.form import build_glyphs
from handrail.cli.running.tally import Tally
from handrail.cli.running.view import RunView
from handrail.protocol.results import OVERLAY_TIER
from handrail.settings import LoadedSettings, load


def run(options: Namespace) -> int:
    """Plays the demo; exit 1 if a check fails."""
    return play(options)


def play(options: Namespace, flags: Mapping[str, object] | None = None) -> int:
    """Plays it, with settings of its own and these."""
    import asyncio  # noqa: PLC0415  help needs no loop

    checks = DemoChecks()
    with redirect_stderr(sys.stdout), open_sample_folder():
        print_note(
            "handrail demo: the model is scripted, all else is real. No key is used, nothing of yours is touched."
        )
        print_note(f'\n$ handrail run "{TASK}"')
        variables, toolchains = find_python()
        loaded = enable_companion_tools(load(os.environ, {"sandbox.toolchains": toolchains or None, **(flags or {})}))
        record = asyncio.run(_play(options, loaded, variables, checks))
        edit = next((one.meta.undo for one in record.list_results("edit")), None)
        show_afterwards(loaded, variables, checks, edit)
        for what in checks.wrong:
            warn(f"ERR not as it should be: {what}")
        if not checks.wrong:
            print_note(
                "\nThat was the demo; its folder is gone. In a project of yours: handrail run 'what is to be done'"
            )
    return FAILED if checks.wrong else OK


async def _play(
    options: Namespace, loaded: LoadedSettings, variables: dict[str, str] | None, checks: DemoChecks
) -> DemoResults:
    form, model = build_glyphs(options), build_scripted_model()
    async with AsyncHandrail(".", session="demo", mode="ask", settings=loaded, variables=variables) as rail:
        view, tally, record = RunView(options, form, model.name), Tally(), DemoResults()
        approver = AutoApprover(view, plain=options.plain)
        for listener in (tally.add, record.add, view.show):
            rail.subscribe(listener)
        begun = time.monotonic()
        turn: Turn = await Agent(rail, model, person=partial(ask_in_turn, rail, approver=approver)).run(TASK)
        view.end()
        checks.check_turn(turn, record, approver.seen)
        for line in render_ending(turn, tally, time.monotonic() - begun, (), form, here=""):
            print_note(line)
        tiers = [one.meta.sandbox.tier for one in record.list_results("exec") if one.meta.sandbox is not None]
        if min(tiers, default=0) < OVERLAY_TIER:
            print_note(
                "Commands have no throw-away copy on this machine, so they were not tried first: handrail doctor."
            )
        return record
