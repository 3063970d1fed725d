"""Where policy is asked about: the workspace, its settings, and the rules that follow from them."""

import os
from argparse import Namespace

from handrail.cli.place import workspace_of
from handrail.cli.preferences import loaded_for
from handrail.policy.configuration import Rules
from handrail.runtime.explaining import Explainer, open_roots
from handrail.runtime.registry import Offer
from handrail.runtime.rules_in_force import rules_in_force
from handrail.settings import load


class PolicyPlace:
    """One workspace, for a person who asks about policy. Nothing is made or written, not even in the state folder."""

    def __init__(self, options: Namespace, mode: str | None = None) -> None:
        self.workspace = workspace_of(options)
        self.loaded = loaded_for(options, mode, self.workspace)
        self._mode = mode
        self._rules = {mode: rules_in_force(self.loaded)}

    def rules(self, mode: str | None = None) -> Rules:
        """The rules in force here, in another mode than was asked for if need be."""
        chosen = self._mode if mode is None else mode
        if chosen not in self._rules:
            self._rules[chosen] = rules_in_force(load(os.environ, {"mode": chosen}, self.workspace))
        return self._rules[chosen]

    def offer(self) -> Offer:
        """The tools that a session would have here."""
        from handrail.runtime.opening import offered  # noqa: PLC0415  commands need none of them

        return offered(self.loaded.settings)

    def explainer(self, tier: int) -> Explainer:
        """Explains calls here."""
        return Explainer(open_roots(self.workspace, self.loaded.settings), self.offer, tier)
