"""Finds out whether this machine has the parts that handrail needs."""

import os
import shlex
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from handrail.kernel.files import has_openat2
from handrail.protocol.errors import ToolError
from handrail.protocol.results import OVERLAY_TIER
from handrail.runtime import recovery
from handrail.runtime.registry import build_tool_set
from handrail.sandbox.diagnosis import Failure, Report, list_kernel_facts
from handrail.sandbox.environment import find_withheld_variables
from handrail.sandbox.mounts import list_refused_toolchains
from handrail.sandbox.probe import make_probe_folder
from handrail.sandbox.profile import SandboxHost
from handrail.sandbox.sandbox import CommandSandbox
from handrail.settings import Settings
from handrail.settings.paths import expand_home
from handrail.state import StoredState
from handrail.tools.exec.environment import describe_foreign_owner
from handrail.workspace.roots import Root
from handrail.workspace.search.ripgrep import find_ripgrep, read_program_version
from handrail.workspace.sensitive_paths import SensitivePaths

__all__ = [
    "Failure",
    "Report",
    "SandboxDiagnosis",
    "SearchProgram",
    "count_crashed_sessions",
    "diagnose_sandbox",
    "find_search_program",
    "has_openat2",
    "restore_audit",
]


class SearchProgram(NamedTuple):
    """The ripgrep that searches."""

    path: str
    version: str | None
    """None if it does not run."""


class SandboxDiagnosis(NamedTuple):
    """The confinement of commands on this machine, as tried out."""

    report: Report
    refused_toolchains: tuple[tuple[str, str], ...]
    """Toolchains of the settings that commands do not see, each with the reason."""
    withheld_variables: dict[str, str]
    """Variables of the settings that commands do not get, with the reasons."""
    kernel_facts: tuple[str, ...]

    @property
    def fix(self) -> str | None:
        """The first command that would help."""
        return next((failure.fix for failure in self.report.failures if failure.fix), None)


def find_search_program() -> SearchProgram | None:
    program = find_ripgrep(())
    return SearchProgram(program, read_program_version(program)) if program else None


def diagnose_sandbox(roots: tuple[str, ...], settings: Settings, state: str) -> SandboxDiagnosis:
    """Tries the tiers for commands that may change these roots."""
    wanted = settings.sandbox
    host = SandboxHost(
        home=os.path.expanduser("~"),
        environ=os.environ,
        state=state,
        toolchains=tuple(expand_home(path, os.environ) for path in wanted.toolchains),
        variables=wanted.environment,
    )
    with make_probe_folder(state) as folder:
        sandbox = CommandSandbox(replace(host, state=folder or state), most=wanted.tier, least=wanted.least)
        report = sandbox.report(roots if folder else ())
        if report.tier == OVERLAY_TIER and sandbox.has_single_user(roots):
            report = sandbox.report(roots, _find_foreign_owner(roots))
    return SandboxDiagnosis(report, list_refused_toolchains(host), find_withheld_variables(host), list_kernel_facts())


def _find_foreign_owner(roots: tuple[str, ...]) -> Failure | None:
    """A folder of another user, over which no overlay of an ordinary user can lie."""
    foreign = None
    with suppress(ToolError, OSError):  # a command that runs there gets the error
        foreign = SensitivePaths().find_foreign([Root(path) for path in roots])
    if foreign is None:
        return None
    fix = f"sudo chown -R {os.geteuid()}:{os.getegid()} {shlex.quote(foreign)}"
    return Failure(tier=OVERLAY_TIER, reason=describe_foreign_owner(foreign), fix=fix)


def count_crashed_sessions(state: StoredState) -> int:
    """The number of sessions that a killed process left. The audit may lack their last records."""
    return len(recovery.list_unsettled_sessions(state))


def restore_audit(state: StoredState) -> int:
    """Adds the audit records that killed processes left out. Returns their number."""
    return recovery.restore_audit(state, build_tool_set(Settings()))
