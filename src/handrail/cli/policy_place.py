"""Where policy is asked about: the workspace, its settings, and the rules that follow from them."""

import os
from argparse import Namespace

from handrail.cli.place import workspace_of
from handrail.cli.preferences import settings_for
from handrail.policy.verdict import Rules
from handrail.runtime.explaining import Explainer, open_roots
from handrail.runtime.registry import Offer
from handrail.settings import load


class PolicyPlace:
    """One workspace, for a person who asks about policy. Nothing is made or written, not even in the state folder."""

    def __init__(self, options: Namespace) -> None:
        self.workspace = workspace_of(options)
        self.settings = settings_for(options, options.mode)
        self._rules: dict[str | None, Rules] = {}

    def rules(self, mode: str | None = None) -> Rules:
        """The rules in force here, in the mode that was asked for, or in another."""
        if mode not in self._rules:
            settings = self.settings if mode is None else load(os.environ, {"mode": mode}).settings
            self._rules[mode] = Rules(settings.mode)
        return self._rules[mode]

    def offer(self) -> Offer:
        """The tools that a session would have here."""
        from handrail.runtime.opening import offered  # noqa: PLC0415  commands need none of them

        return offered(self.settings)

    def explainer(self, tier: int) -> Explainer:
        """Explains calls here."""
        return Explainer(open_roots(self.workspace, self.settings), self.offer, tier)
