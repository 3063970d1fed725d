"""What the settings of all layers say to policy."""

from handrail.policy.configuration import Restriction, Rules
from handrail.settings import Loaded


def rules_in_force(loaded: Loaded) -> Rules:
    """The rules, for somebody who is there to be asked."""
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
