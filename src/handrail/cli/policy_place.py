"""Where policy is asked about: the workspace, its settings, and the rules that follow from them."""

import os
from argparse import Namespace

from handrail.cli.output import note
from handrail.cli.place import workspace_of
from handrail.policy.configuration import Restriction, Rules
from handrail.runtime.explaining import Explainer, open_roots
from handrail.runtime.registry import Offer
from handrail.settings import Loaded, load


class PolicyPlace:
    """One workspace, for a person who asks about policy. Nothing is made or written, not even in the state folder."""

    def __init__(self, options: Namespace, mode: str | None = None) -> None:
        self.workspace = workspace_of(options)
        self.loaded = load(os.environ, {"mode": mode}, self.workspace)
        self._rules = {mode: rules_of(self.loaded)}
        self._mode = mode
        if not options.quiet:
            for text in self.loaded.notes:
                note(text)

    def rules(self, mode: str | None = None) -> Rules:
        """The rules in force here, in another mode than it was asked for if need be."""
        chosen = self._mode if mode is None else mode
        if chosen not in self._rules:
            self._rules[chosen] = rules_of(load(os.environ, {"mode": chosen}, self.workspace))
        return self._rules[chosen]

    def offer(self) -> Offer:
        """The tools that a session would have here."""
        from handrail.runtime.opening import offered  # noqa: PLC0415  commands need none of them

        return offered(self.loaded.settings)

    def explainer(self, tier: int) -> Explainer:
        """Explains calls here."""
        return Explainer(open_roots(self.workspace, self.loaded.settings), self.offer, tier)


def rules_of(loaded: Loaded) -> Rules:
    """What the settings say to policy, for somebody who is there to be asked."""
    settings = loaded.settings
    restricted = settings.restricted if settings.profile == "restricted" else None
    return Rules(
        settings.mode,
        rules=loaded.rules,
        outside=settings.paths.outside,
        bulk_deleted=settings.bulk.deleted,
        bulk_changed=settings.bulk.changed,
        restriction=Restriction(restricted.commands, restricted.folders) if restricted else None,
    )
