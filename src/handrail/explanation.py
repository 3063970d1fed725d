"""Explains the decisions of policy without a session.

Nothing is run or written, not even in the state folder.
"""

import os
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, Self

from msgspec import structs

from handrail.policy.config import Grant, PolicyConfig
from handrail.policy.verdict import TABLE
from handrail.protocol.decisions import CommandFact, Decision, Facts, Mode
from handrail.protocol.errors import StoreError
from handrail.protocol.text import escape_control
from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.explain import (
    DecisionChange,
    Example,
    Explainer,
    PolicyReplay,
    open_roots,
    replay,
    run_rule_examples,
    run_table_examples,
)
from handrail.runtime.registry import ToolSet, build_tool_set
from handrail.settings import LoadedSettings, SettingsError, resolve_state_folder
from handrail.settings.rules import build_policy_config, check_tools
from handrail.store.grants import GrantFiles
from handrail.store.state_dir import StateFolder
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.exec.spec import EXEC

__all__ = [
    "MODE_TABLE",
    "DecisionChange",
    "Example",
    "PolicyInspector",
    "PolicyReplay",
    "PolicyTest",
    "list_network_remarks",
]

MODE_TABLE = TABLE
"""The verdict of each mode on each kind of part, if no rule decides."""


class PolicyTest(NamedTuple):
    """The examples of rules and built-in tables, tested."""

    examples: tuple[Example, ...]
    rules: int
    remarks: tuple[str, ...]
    """Faults of rules that are no errors."""


class PolicyInspector:
    """The policy of a workspace, for a person who asks about it."""

    def __init__(self, workspace: str, loaded: LoadedSettings, tier: int | None = None) -> None:
        """`tier` is the sandbox that commands are judged in. None: the one that they have here."""
        self.workspace = workspace
        self._loaded, self._state = loaded, StateFolder(resolve_state_folder(os.environ))
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
        return self._explainer.explain_with_facts(tool, arguments, rules)

    def get_mode(self, mode: Mode | None = None) -> Mode:
        """The mode that decides if a question names this one."""
        return self._get_rules(mode).mode

    def replay(self, session_folders: Iterable[str], since: datetime | None, mode: Mode | None) -> PolicyReplay:
        """Decides past calls again by their recorded facts."""

        def find_spec(name: str) -> ToolSpec | None:
            tool = self._offer.get_registered(name)
            return EXEC if name == EXEC.name else tool.spec if tool else None

        return replay(session_folders, find_spec, self._get_rules(), since, mode)

    def test(self) -> PolicyTest:
        """Tests the examples of rules and tables. SettingsError if a rule is wrong without its examples too."""
        from handrail.policy.rules.lint import review  # noqa: PLC0415  only for `policy test`

        bare = tuple(structs.replace(rule, match=(), no_match=()) for rule in self._loaded.rules)
        if problems := [fault.problem for fault in review(bare) if fault.is_error]:
            raise SettingsError("The rules cannot be used", problems, "Correct them, then try again.")
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
        return build_tool_set(self._loaded.settings)

    @cached_property
    def _explainer(self) -> Explainer:
        roots = open_roots(self.workspace, self._loaded.settings, self._get_rules(), self._state)
        processes = os.path.join(self._state.home(os.path.realpath(self.workspace)), "cli", "processes")
        host = lambda: self._build_commands(self._state.path).host  # noqa: E731  looked up when a command needs it
        return Explainer(roots, lambda: self._offer, self._find_tier, host, processes)

    def _find_tier(self) -> int:
        if self._tier is None:
            from handrail.sandbox.probe import make_probe_folder  # noqa: PLC0415  only commands are confined

            roots = open_roots(self.workspace, self._loaded.settings, self._get_rules(), self._state)
            with closing(roots) as opened, make_probe_folder(self._state.path) as folder:
                self._tier = self._build_commands(folder or self._state.path).find_tier(opened.roots)
        return self._tier

    def _build_commands(self, state: str) -> CommandEnvironment:
        return CommandEnvironment(self._loaded.settings, state, os.environ)


def list_network_remarks(decision: Decision, command: CommandFact) -> list[str]:
    """Sentences about the hosts that a command names, and about what would open them."""
    from handrail.policy.network.needs import MIN_NETWORK_TIER, render_host  # noqa: PLC0415  few commands name any

    hosts = ", ".join(map(render_host, command.hosts))
    if not hosts or command.tier == 0 or decision.rule == "call.denied":
        remarks: list[str] = []
    elif command.tier < MIN_NETWORK_TIER:
        remarks = [f"the network takes a sandbox of tier {MIN_NETWORK_TIER}, so it cannot reach {hosts}"]
    elif decision.decision == "confirm":
        remarks = [f"a yes opens, for this call: {hosts}"]
    else:
        remarks = [f"it names {hosts}; without a question only what network.allow lists is open"]
    return [*remarks, *(f"not opened: {escape_control(one)}" for one in command.unopened if one not in decision.reason)]
