"""Where policy is asked about: the workspace, its settings, and the rules that follow from them."""

import os
from argparse import Namespace
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.cli.place import workspace_of
from handrail.cli.preferences import loaded_for
from handrail.policy.configuration import Rules
from handrail.protocol.decision import Mode
from handrail.protocol.error import StoreError
from handrail.runtime.registry import Offer
from handrail.settings import state_folder
from handrail.settings.policy import rules_of
from handrail.store.folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.runtime.explaining import Explainer


class PolicyPlace:
    """One workspace, for a person who asks about policy. Nothing is made or written, not even in the state folder."""

    def __init__(self, options: Namespace, mode: Mode | None = None, *, review: bool = True) -> None:
        self.workspace = workspace_of(options)
        self.loaded = loaded_for(options, mode, self.workspace, review=review)
        self._rules: dict[Mode | None, Rules] = {}

    def rules(self, mode: Mode | None = None) -> Rules:
        """The rules in force here, in another mode if need be."""
        if mode not in self._rules:
            self._rules[mode] = rules_of(self.loaded, mode)
        return self._rules[mode]

    def granted(self, mode: Mode | None = None) -> Rules:
        """The same, with what people granted to the workspace; what they granted to a session is known in it alone."""
        from handrail.policy.rules.grant import Grant  # noqa: PLC0415  only explaining needs them
        from handrail.store.grants import GrantFiles  # noqa: PLC0415

        rules, files = self.rules(mode), GrantFiles(self.state().granted(os.path.realpath(self.workspace)))
        with suppress(StoreError):  # what cannot be looked up is not granted
            found = files.listed()
            rules = replace(rules, grants=tuple(Grant(one.id, one.command, one.scope) for one in found))
        return rules

    def state(self) -> StateFolder:
        """The state folder, which need not exist."""
        return StateFolder(state_folder(os.environ))

    def offer(self) -> Offer:
        """The tools that a session would have here."""
        from handrail.runtime.offering import offered  # noqa: PLC0415  commands need none of them

        return offered(self.loaded.settings)

    def tier(self) -> int:
        """The sandbox that commands have here, unless they go on after their call: those have no layer."""
        from handrail.runtime.explaining import open_roots  # noqa: PLC0415  a replay looks at no file
        from handrail.sandbox.probing.place import place_to_try  # noqa: PLC0415  as above
        from handrail.tools.commands import Commands  # noqa: PLC0415  only commands are confined

        roots = open_roots(self.workspace, self.loaded.settings, self.rules(), self.state())
        with closing(roots) as house, place_to_try(self.state().path) as place:
            commands = Commands(self.loaded.settings, place or self.state().path, os.environ)
            return commands.tier_over(house.roots)

    def explainer(self, tier: "Callable[[], int]") -> "Explainer":
        """Explains calls here, as in a sandbox of that tier."""
        from handrail.runtime.explaining import Explainer, open_roots  # noqa: PLC0415  a replay looks at no file

        roots = open_roots(self.workspace, self.loaded.settings, self.rules(), self.state())
        processes = os.path.join(self.state().home(os.path.realpath(self.workspace)), "cli", "processes")
        return Explainer(roots, self.offer, tier, processes)
