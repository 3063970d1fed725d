"""The checks of doctor that are about confining commands."""

import os
import shlex
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress

from msgspec.structs import replace

from handrail.cli.preferences import find_project_folder
from handrail.cli.rows import Finding, replace_home
from handrail.protocol.errors import ToolError
from handrail.protocol.results import OVERLAY_TIER
from handrail.sandbox.diagnosis import Failure, Report
from handrail.settings import Settings, SettingsError, load, resolve_state_folder
from handrail.settings.model import Sandbox as Wanted
from handrail.settings.paths import expand_home


def check_sandbox() -> Iterator[Finding]:
    """How commands are confined here, and what would confine them better; it is tried out."""
    from handrail.sandbox.diagnosis import list_kernel_facts  # noqa: PLC0415
    from handrail.sandbox.environment import find_withheld_variables  # noqa: PLC0415
    from handrail.sandbox.mounts import list_refused_toolchains  # noqa: PLC0415
    from handrail.sandbox.probe import make_probe_folder  # noqa: PLC0415
    from handrail.sandbox.profile import SandboxHost  # noqa: PLC0415  only doctor asks
    from handrail.sandbox.sandbox import CommandSandbox  # noqa: PLC0415

    folder = find_project_folder(Namespace(workspace=None))
    roots = (os.path.realpath(folder),) if folder else ()
    try:
        settings = load(os.environ, {}, folder).settings
        state = resolve_state_folder(os.environ)
    except SettingsError:
        settings, state, roots = Settings(), "/nowhere/handrail", ()  # other rows are about that
    wanted = settings.sandbox
    shown = tuple(expand_home(path, os.environ) for path in wanted.toolchains)
    home, listed = os.path.expanduser("~"), wanted.environment
    host = SandboxHost(home=home, environ=os.environ, state=state, toolchains=shown, variables=listed)
    with make_probe_folder(state) as place:
        sandbox = CommandSandbox(replace(host, state=place or state), most=wanted.tier, least=wanted.least)
        report = sandbox.report(roots if place else ())
        if report.tier == OVERLAY_TIER and sandbox.has_single_user(roots):
            report = sandbox.report(roots, _of_others(roots))
    yield _in_use(report, wanted)
    yield from (_not_working(failure, report) for failure in report.failures)
    for path, why in list_refused_toolchains(host):
        yield Finding(
            "sandbox", "warning", f"the toolchain {replace_home(path)} is not shown: {why}", "handrail config"
        )
    for name, why in find_withheld_variables(host).items():
        yield Finding("sandbox", "warning", f"the variable {name} is not passed on: it {why}", "handrail config")
    yield from (Finding("sandbox", "ok", fact) for fact in list_kernel_facts())
    yield _network(report, settings)


def _of_others(roots: tuple[str, ...]) -> Failure | None:
    """What of the workspace belongs to others, so that no overlay of an ordinary user can lie over it."""
    from handrail.tools.exec.environment import describe_foreign_owner  # noqa: PLC0415  only if not root
    from handrail.workspace.roots import Root  # noqa: PLC0415
    from handrail.workspace.sensitive_paths import SensitivePaths  # noqa: PLC0415

    found = None
    with suppress(ToolError, OSError):  # what cannot be looked through is told when a command is to run
        found = SensitivePaths().find_foreign([Root(path) for path in roots])
    if found is None:
        return None
    fix = f"sudo chown -R {os.geteuid()}:{os.getegid()} {shlex.quote(found)}"
    return Failure(tier=OVERLAY_TIER, reason=describe_foreign_owner(found), fix=fix)


def _network(report: Report, settings: Settings) -> Finding:
    """What of the network commands have without a question, and whether a yes can open any."""
    if "net.connect" in settings.tools.deny:
        return Finding("network", "ok", "closed to commands and servers: [tools] deny lists net.connect")
    listed = len(settings.network.allow)
    entries = f"{listed} entr{'y' if listed == 1 else 'ies'}"
    if report.tier == 0:
        text = "commands reach every host: there is no sandbox to keep them from it"
        return Finding("network", "warning", text, _first_fix(report) or "handrail config")
    if report.tier < 2:
        lists = f"; network.allow has {entries}, which open nothing" if listed else ""
        text = f"no command reaches any host: opening single ones takes sandbox tier 2{lists}"
        return Finding("network", "warning" if listed else "ok", text, _first_fix(report) if listed else None)
    if listed:
        return Finding("network", "ok", f"what network.allow lists is open to commands that may write: {entries}")
    return Finding("network", "ok", "nothing is open to commands; a yes opens the hosts that its request names")


def _in_use(report: Report, wanted: Wanted) -> Finding:
    text = f"tier {report.tier}: commands are confined by {replace_home(report.means)}"
    if report.tier < wanted.least:
        few = " that may change files" if report.tier == 2 else ""
        text = f"{text}; settings ask for tier {wanted.least} at least, so none runs{few}"
        return Finding("sandbox", "error", text, _first_fix(report) or "handrail config")
    if report.tier == 0:
        return Finding("sandbox", "warning", f"{text}; every command asks", _first_fix(report) or "handrail config")
    return Finding("sandbox", "ok", text)


def _not_working(failure: Failure, report: Report) -> Finding:
    does_not = "has no overlay here" if failure.tier == OVERLAY_TIER else "does not work"
    text = f"tier {failure.tier} {does_not}: {replace_home(failure.reason)}"
    fix = failure.fix or _first_fix(report)
    return Finding("sandbox", "warning", text, replace_home(fix) if fix and "'" not in fix else fix)  # '~/…' is no home


def _first_fix(report: Report) -> str | None:
    return next((failure.fix for failure in report.failures if failure.fix), None)
