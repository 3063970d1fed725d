"""Answers questions about a workspace without a session.

Only `restore_audit` writes. `handrail tools` loads this module, so sandboxes are imported late.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

from msgspec import structs

from handrail.kernel.files import has_openat2
from handrail.policy.config import Grant, PolicyConfig, Rule
from handrail.policy.network.needs import MIN_NETWORK_TIER, render_host
from handrail.policy.rules.lint import review
from handrail.policy.verdict import TABLE as MODE_TABLE
from handrail.protocol.decisions import CommandFact, Decision, Facts, Mode
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.results import OVERLAY_TIER
from handrail.protocol.text import escape_control
from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.explain import (
    DecisionChange,
    Example,
    Explainer,
    PolicyReplay,
    compare_replays,
    open_roots,
    replay,
    run_rule_examples,
    run_table_examples,
)
from handrail.runtime.registry import ToolSet, build_tool_set
from handrail.sandbox.diagnosis import Failure, list_kernel_facts
from handrail.sandbox.environment import find_withheld_variables
from handrail.sandbox.mounts import list_refused_toolchains
from handrail.sandbox.probe import make_probe_folder
from handrail.sandbox.profile import SandboxHost
from handrail.sandbox.sandbox import CommandSandbox
from handrail.settings import LoadedSettings, Settings, SettingsError, resolve_state_folder
from handrail.settings.load import build_policy_config, check_tools, list_trusted_servers
from handrail.settings.merge import ToolFile
from handrail.settings.paths import expand_home
from handrail.store.grants import GrantFiles
from handrail.store.runner import list_dead_runners
from handrail.store.state_dir import StateFolder
from handrail.tools.command_environment import CommandEnvironment, describe_foreign_owner
from handrail.tools.exec.spec import EXEC
from handrail.workspace.roots import Root, open_extra_roots
from handrail.workspace.search.ripgrep import find_ripgrep, read_program_version
from handrail.workspace.sensitive_paths import SensitivePaths
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.runtime.foreign.source import ToolSource
    from handrail.sandbox.diagnosis import Report
    from handrail.skills.discovery import SkillCatalog
    from handrail.skills.skill import Skill

# What other modules define, and commands take from here.
__all__ = ["MODE_TABLE", "DecisionChange", "PolicyReplay", "build_tool_set", "has_openat2"]

# Tools


def list_tool_specs(settings: Settings, files: tuple[ToolFile, ...] = ()) -> list[ToolSpec]:
    """The tools that a session with these settings offers. UsageError if the settings name tools that do not exist."""
    if settings.dialect is not None:
        from handrail.dialects.surface import list_dialect_specs  # noqa: PLC0415  few sessions speak a dialect

        return list_dialect_specs(settings, files)
    return [tool.spec for tool in build_tool_set(settings, files=files).tools]


class ServerStatus(NamedTuple):
    """A server after it was asked for its tools."""

    server: str
    tools: int
    problems: tuple[str, ...]


def check_servers(sources: "tuple[ToolSource, ...]") -> Iterator[ServerStatus]:
    """Starts servers, asks for their tools, and ends them."""
    try:
        for source in sources:
            tools = source.listed()
            yield ServerStatus(source.server, len(tools), source.problems())
    finally:
        _load_catalog().close_sources(sources)


def list_server_specs(
    sources: "tuple[ToolSource, ...]", loaded: LoadedSettings
) -> tuple[list[ToolSpec], list[ServerStatus]]:
    """The tools of servers that a session would offer. The servers are started for that, and ended."""
    try:
        specs = _load_catalog().list_foreign_specs(sources, list_trusted_servers(loaded), loaded.settings.tools.disable)
        return specs, [ServerStatus(source.server, 0, source.problems()) for source in sources]
    finally:
        _load_catalog().close_sources(sources)


# Skills


def load_skills(workspace: str, loaded: LoadedSettings, environ: Mapping[str, str]) -> "SkillCatalog":
    """The skills that a session would find."""
    settings, discovery = loaded.settings, _load_discovery()
    folders = discovery.list_skill_folders(settings, environ)
    known = build_tool_set(settings, files=loaded.tool_files).registered
    with _open_workspace(workspace, settings) as opened:
        return discovery.find_skills(opened, folders, disabled=settings.skills.disable, known=known)


def find_skill(workspace: str, loaded: LoadedSettings, environ: Mapping[str, str], name: str) -> "Skill | None":
    """A skill with its other files."""
    skill = load_skills(workspace, loaded, environ).get(name)
    with _open_workspace(workspace, loaded.settings) as opened:
        return None if skill is None else _load_discovery().add_files(opened, skill)


def _open_workspace(workspace: str, settings: Settings) -> Workspace:
    return Workspace(workspace, *open_extra_roots(settings.paths.read_only, settings.paths.writable))


# Policy


class PolicyTest(NamedTuple):
    """The examples of rules and built-in tables, tested."""

    examples: tuple[Example, ...]
    rules: int
    remarks: tuple[str, ...]
    """Faults of rules that are no errors."""


class PolicyInspector:
    """The policy of a workspace, for a person who asks about it."""

    def __init__(
        self, workspace: str, loaded: LoadedSettings, tier: int | None = None, *, state: StateFolder | None = None
    ) -> None:
        """`tier` is the sandbox that commands are judged in. None: the one that they have here."""
        self.workspace = workspace
        self._loaded, self._state = loaded, state or StateFolder(resolve_state_folder(os.environ))
        self._tier = tier
        self._rules: dict[Mode | None, PolicyConfig] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_explainer" in self.__dict__:
            self._explainer.close()

    def explain(self, tool: str, arguments: object, mode: Mode | None = None) -> tuple[Decision, Facts]:
        """The decision about a call with all its parts, and the facts that it depends on.

        Grants of the workspace count. Grants of a session are known in that session only.
        """
        rules, files = self._get_rules(mode), GrantFiles(self._state.grants(os.path.realpath(self.workspace)))
        with suppress(StoreError):  # unreadable grants allow nothing
            found = files.list_grants()
            rules = structs.replace(rules, grants=tuple(Grant(one.id, one.command, one.scope) for one in found))
        return self._explainer.explain(tool, arguments, rules)

    def get_mode(self, mode: Mode | None = None) -> Mode:
        """The mode that decides if a question names this one."""
        return self._get_rules(mode).mode

    def replay(self, session_folders: Iterable[str], since: datetime | None, mode: Mode | None) -> PolicyReplay:
        """Decides past calls again by their recorded facts."""
        return replay(session_folders, self._find_spec, self._get_rules(), since, mode)

    def try_rule(self, table: Mapping[str, object], session_folders: Iterable[str], since: datetime) -> PolicyReplay:
        """Decides past calls again with one more rule. `then` of a change is the decision without it.

        The table is written as in a settings file. SettingsError if the rule is unusable.
        """
        rule, rules, folders = self._parse_rule(table), self._get_rules(), tuple(session_folders)
        extended = structs.replace(rules, rules=(*rules.rules, rule))
        without = replay(folders, self._find_spec, rules, since)
        return compare_replays(without, replay(folders, self._find_spec, extended, since), rule)

    def _find_spec(self, name: str) -> ToolSpec | None:
        tool = self._offer.get_registered(name)
        return EXEC if name == EXEC.name else tool.spec if tool else None

    def _parse_rule(self, table: Mapping[str, object]) -> Rule:
        from handrail.settings.toml_file import parse_rules  # noqa: PLC0415  explaining reads no TOML

        rules, problems = parse_rules([dict(table)], "user", "")
        faults = review((*self._loaded.rules, *rules)) if rules else ()
        if problems := [*problems, *(fault.problem for fault in faults if fault.is_error)]:
            raise SettingsError("The rule is unusable", problems, "Correct it, then try again.")
        check_tools(structs.replace(self._loaded, rules=rules), self._offer.registered)
        return rules[0]

    def test(self) -> PolicyTest:
        """Tests the examples of rules and tables. SettingsError if a rule is wrong without its examples too."""
        bare = tuple(structs.replace(rule, match=(), no_match=()) for rule in self._loaded.rules)
        if problems := [fault.problem for fault in review(bare) if fault.is_error]:
            raise SettingsError("The rules are unusable", problems, "Correct them, then try again.")
        check_tools(self._loaded, self._offer.registered)
        rules = self._get_rules()
        examples = (*run_rule_examples(rules, self._explainer), *run_table_examples())
        remarks = tuple(fault.problem for fault in review(rules.rules) if not fault.is_error)
        return PolicyTest(examples, len(rules.rules), remarks)

    def _get_rules(self, mode: Mode | None = None) -> PolicyConfig:
        if mode not in self._rules:
            self._rules[mode] = build_policy_config(self._loaded, mode)
        return self._rules[mode]

    @cached_property
    def _offer(self) -> ToolSet:
        return build_tool_set(self._loaded.settings, files=self._loaded.tool_files)

    @cached_property
    def _explainer(self) -> Explainer:
        roots = open_roots(self.workspace, self._loaded.settings, self._get_rules(), self._state)
        processes = os.path.join(self._state.home(os.path.realpath(self.workspace)), "cli", "processes")
        host = lambda: self._build_commands(self._state.path).host  # noqa: E731  looked up when a command needs it
        listed = self._loaded.settings.network.allow
        return Explainer(roots, lambda: self._offer, self._find_tier, host, listed, processes)

    def _find_tier(self) -> int:
        if self._tier is None:
            roots = open_roots(self.workspace, self._loaded.settings, self._get_rules(), self._state)
            with closing(roots) as opened, make_probe_folder(self._state.path) as folder:
                self._tier = self._build_commands(folder or self._state.path).find_tier(opened.roots)
        return self._tier

    def _build_commands(self, state: str) -> CommandEnvironment:
        return CommandEnvironment(self._loaded.settings, state, os.environ)


def list_remarks(decision: Decision, facts: Facts, *, tells_tier: bool = True) -> list[str]:
    """Sentences that follow the explanation of a decision. `tells_tier`: the sandbox is the one of this machine."""
    command = facts.command
    remarks = _list_network_remarks(decision, command) if command is not None else []
    if command is not None and tells_tier:
        remarks.append(f"in the sandbox of this machine: tier {command.tier}")
    if facts.foreign is not None:
        remarks.append("no server was contacted: its arguments and version are not checked")
    return remarks


def _list_network_remarks(decision: Decision, command: CommandFact) -> list[str]:
    """Sentences about the hosts that a command names, and about what would open them."""
    hosts = ", ".join(map(render_host, command.hosts))
    if not hosts or command.tier == 0 or decision.rule == "call.denied":
        remarks: list[str] = []
    elif command.tier < MIN_NETWORK_TIER:
        remarks = [f"network access needs sandbox tier {MIN_NETWORK_TIER}, so it cannot reach {hosts}"]
    elif decision.decision == "confirm":
        remarks = [f"approval opens, for this call: {hosts}"]
    else:
        remarks = [f"it names {hosts}; without approval only hosts in network.allow are open"]
    if decision.decision == "confirm":  # the reason names them
        return remarks
    return [*remarks, *(f"not opened: {escape_control(one)}" for one in command.unopened)]


# The machine


class SearchProgram(NamedTuple):
    """The ripgrep that searches."""

    path: str
    version: str | None
    """None if it does not run."""


class SandboxDiagnosis(NamedTuple):
    """The confinement of commands on this machine, as tried out."""

    report: "Report"
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
        sandbox = CommandSandbox(structs.replace(host, state=folder or state), most=wanted.tier, least=wanted.least)
        report = sandbox.report(roots if folder else ())
        if report.tier == OVERLAY_TIER and sandbox.has_single_user(roots):
            report = sandbox.report(roots, _find_foreign_owner(roots))
    return SandboxDiagnosis(report, list_refused_toolchains(host), find_withheld_variables(host), list_kernel_facts())


def _find_foreign_owner(roots: tuple[str, ...]) -> "Failure | None":
    """A folder of another user, over which no overlay of an ordinary user can lie."""
    foreign = None
    with suppress(ToolError, OSError):  # a command that runs there gets the error
        foreign = SensitivePaths().find_foreign([Root(path) for path in roots])
    if foreign is None:
        return None
    fix = f"sudo chown -R {os.geteuid()}:{os.getegid()} {shlex.quote(foreign)}"
    return Failure(tier=OVERLAY_TIER, reason=describe_foreign_owner(foreign), fix=fix)


def count_crashed_sessions(state: StateFolder) -> int:
    """The number of sessions that a killed process left. The audit may lack their last records."""
    return sum(1 for folder in state.sessions() if list_dead_runners(folder))


def restore_audit(state: StateFolder) -> int:
    """Adds the audit records that killed processes left out. Returns their number."""
    from handrail.runtime import recovery  # noqa: PLC0415  it loads the journal

    return recovery.restore_audit(state, build_tool_set(Settings()))


def _load_discovery():  # the type is that of the module
    from handrail.skills import discovery  # noqa: PLC0415  an engine room

    return discovery


def _load_catalog():
    from handrail.runtime.foreign import catalog  # noqa: PLC0415  few have other servers

    return catalog
