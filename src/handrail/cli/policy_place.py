"""Where policy is asked about: the workspace, its settings, and the rules that follow from them."""

import os
from argparse import Namespace
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.cli.context import load_settings, resolve_workspace
from handrail.policy.config import PolicyConfig
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import StoreError
from handrail.runtime.registry import ToolSet
from handrail.settings import resolve_state_folder
from handrail.settings.rules import build_policy_config
from handrail.store.state_dir import StateFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.runtime.explain import Explainer
    from handrail.tools.exec.environment import CommandEnvironment


class PolicyWorkspace:
    """One workspace, for a person who asks about policy. Nothing is made or written, not even in the state folder."""

    def __init__(self, options: Namespace, mode: Mode | None = None, *, review: bool = True) -> None:
        self.workspace = resolve_workspace(options)
        self.loaded = load_settings(options, mode, self.workspace, review=review)
        self._rules: dict[Mode | None, PolicyConfig] = {}

    def rules(self, mode: Mode | None = None) -> PolicyConfig:
        """The rules in force here, in another mode if need be."""
        if mode not in self._rules:
            self._rules[mode] = build_policy_config(self.loaded, mode)
        return self._rules[mode]

    def granted(self, mode: Mode | None = None) -> PolicyConfig:
        """The same, with what people granted to the workspace; what they granted to a session is known in it alone."""
        from handrail.policy.config import Grant  # noqa: PLC0415  only explaining needs them
        from handrail.store.grants import GrantFiles  # noqa: PLC0415

        rules, files = self.rules(mode), GrantFiles(self.state().grants(os.path.realpath(self.workspace)))
        with suppress(StoreError):  # what cannot be looked up is not granted
            found = files.list_grants()
            rules = replace(rules, grants=tuple(Grant(one.id, one.command, one.scope) for one in found))
        return rules

    def state(self) -> StateFolder:
        """The state folder, which need not exist."""
        return StateFolder(resolve_state_folder(os.environ))

    def offer(self) -> ToolSet:
        """The tools that a session would have here."""
        from handrail.runtime.registry import build_tool_set  # noqa: PLC0415  commands need none of them

        return build_tool_set(self.loaded.settings)

    def tier(self) -> int:
        """The sandbox that commands have here, unless they go on after their call: those have no overlay."""
        from handrail.runtime.explain import open_roots  # noqa: PLC0415  a replay looks at no file
        from handrail.sandbox.probe import make_probe_folder  # noqa: PLC0415  as above

        roots = open_roots(self.workspace, self.loaded.settings, self.rules(), self.state())
        with closing(roots) as house, make_probe_folder(self.state().path) as place:
            return self._commands(place or self.state().path).find_tier(house.roots)

    def explainer(self, tier: "Callable[[], int]") -> "Explainer":
        """Explains calls here, as in a sandbox of that tier."""
        from handrail.runtime.explain import Explainer, open_roots  # noqa: PLC0415  a replay looks at no file

        roots = open_roots(self.workspace, self.loaded.settings, self.rules(), self.state())
        processes = os.path.join(self.state().home(os.path.realpath(self.workspace)), "cli", "processes")
        return Explainer(roots, self.offer, tier, lambda: self._commands(self.state().path).host, processes)

    def _commands(self, state: str) -> "CommandEnvironment":
        from handrail.tools.exec.environment import CommandEnvironment  # noqa: PLC0415  only commands are confined

        return CommandEnvironment(self.loaded.settings, state, os.environ)
