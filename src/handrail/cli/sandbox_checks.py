"""The checks of doctor that are about confining commands."""

import os
import shlex
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress

from msgspec.structs import replace

from handrail.cli.preferences import project_folder
from handrail.cli.rows import Row, without_home
from handrail.protocol.decision import LAYERED
from handrail.protocol.error import ToolError
from handrail.sandbox.report import Failure, Report
from handrail.settings import Settings, SettingsError, load, state_folder
from handrail.settings.location import expand_home
from handrail.settings.model import Sandbox as Wanted


def sandbox() -> Iterator[Row]:
    """How commands are confined here, and what would confine them better; it is tried out."""
    from handrail.sandbox.host import Host  # noqa: PLC0415  only doctor asks
    from handrail.sandbox.probing.facts import facts  # noqa: PLC0415
    from handrail.sandbox.probing.place import place_to_try  # noqa: PLC0415
    from handrail.sandbox.sandbox import Sandbox  # noqa: PLC0415
    from handrail.sandbox.variables.environment import kept_back  # noqa: PLC0415
    from handrail.sandbox.view.toolchains import refused  # noqa: PLC0415

    folder = project_folder(Namespace(workspace=None))
    roots = (os.path.realpath(folder),) if folder else ()
    try:
        settings = load(os.environ, {}, folder).settings
        state = state_folder(os.environ)
    except SettingsError:
        settings, state, roots = Settings(), "/nowhere/handrail", ()  # other rows are about that
    wanted = settings.sandbox
    shown = tuple(expand_home(path, os.environ) for path in wanted.toolchains)
    home, listed = os.path.expanduser("~"), wanted.environment
    host = Host(home=home, environ=os.environ, state=state, toolchains=shown, variables=listed)
    with place_to_try(state) as place:
        sandbox = Sandbox(replace(host, state=place or state), most=wanted.tier, least=wanted.least)
        report = sandbox.report(roots if place else ())
        if report.tier == LAYERED and sandbox.knows_one_user(roots):
            report = sandbox.report(roots, _of_others(roots))
    yield _in_use(report, wanted)
    yield from (_not_working(failure, report) for failure in report.failures)
    for path, why in refused(host):
        yield Row("sandbox", "warning", f"the toolchain {without_home(path)} is not shown: {why}", "handrail config")
    for name, why in kept_back(host).items():
        yield Row("sandbox", "warning", f"the variable {name} is not passed on: it {why}", "handrail config")
    yield from (Row("sandbox", "ok", fact) for fact in facts())
    yield _network(report, settings)


def _of_others(roots: tuple[str, ...]) -> Failure | None:
    """What of the workspace belongs to others, so that no layer of an ordinary user can lie over it."""
    from handrail.tools.commands import because_of_others  # noqa: PLC0415  only who is not root has such a layer
    from handrail.workspace.root import Root  # noqa: PLC0415
    from handrail.workspace.withheld import Withheld  # noqa: PLC0415

    found = None
    with suppress(ToolError, OSError):  # what cannot be looked through is told when a command is to run
        found = Withheld().foreign([Root(path) for path in roots])
    if found is None:
        return None
    fix = f"sudo chown -R {os.geteuid()}:{os.getegid()} {shlex.quote(found)}"
    return Failure(tier=LAYERED, reason=because_of_others(found), fix=fix)


def _network(report: Report, settings: Settings) -> Row:
    """What of the network commands have without a question, and whether a yes can open any."""
    if "net.connect" in settings.tools.deny:
        return Row("network", "ok", "closed to commands and servers: [tools] deny lists net.connect")
    listed = len(settings.network.allow)
    entries = f"{listed} entr{'y' if listed == 1 else 'ies'}"
    if report.tier == 0:
        text = "commands reach every host: there is no sandbox to keep them from it"
        return Row("network", "warning", text, _first_fix(report) or "handrail config")
    if report.tier < 2:
        lists = f"; network.allow has {entries}, which open nothing" if listed else ""
        text = f"no command reaches any host: opening single ones takes sandbox tier 2{lists}"
        return Row("network", "warning" if listed else "ok", text, _first_fix(report) if listed else None)
    if listed:
        return Row("network", "ok", f"what network.allow lists is open to commands that may write: {entries}")
    return Row("network", "ok", "nothing is open to commands; a yes opens the hosts that its request names")


def _in_use(report: Report, wanted: Wanted) -> Row:
    text = f"tier {report.tier}: commands are confined by {without_home(report.means)}"
    if report.tier < wanted.least:
        few = " that may change files" if report.tier == 2 else ""
        text = f"{text}; settings ask for tier {wanted.least} at least, so none runs{few}"
        return Row("sandbox", "error", text, _first_fix(report) or "handrail config")
    if report.tier == 0:
        return Row("sandbox", "warning", f"{text}; every command asks", _first_fix(report) or "handrail config")
    return Row("sandbox", "ok", text)


def _not_working(failure: Failure, report: Report) -> Row:
    does_not = "has no layer here" if failure.tier == LAYERED else "does not work"
    text = f"tier {failure.tier} {does_not}: {without_home(failure.reason)}"
    fix = failure.fix or _first_fix(report)
    return Row("sandbox", "warning", text, without_home(fix) if fix and "'" not in fix else fix)  # '~/…' is no home


def _first_fix(report: Report) -> str | None:
    return next((failure.fix for failure in report.failures if failure.fix), None)
