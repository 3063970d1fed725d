"""What people said not to be asked about again, kept until it is revoked: one small file for each class of commands."""

from handrail.protocol.permission import StandingGrant
from handrail.store.small_files import SmallFiles

_REVOKED = ".revoked"
"""How the mark is called that stays of a grant. While it is there the grant is none, whoever writes it again: the yes
that it came from may be carried out anew after a crash."""


class GrantFiles:
    """A folder of them, in the state folder: of one session, or of one workspace."""

    def __init__(self, path: str) -> None:
        self._files = SmallFiles(path, StandingGrant, "grants")

    def names(self) -> frozenset[str]:
        """What is granted, by ids: a grant never changes, so these change whenever it does."""
        found = self._files.names()
        return frozenset(name for name in found if "." not in name and name + _REVOKED not in found)

    def listed(self) -> list[StandingGrant]:
        """All of them, the oldest first. One that cannot be read was not granted."""
        found = [granted for name in self.names() if (granted := self._files.read(name)) and granted.id == name]
        return sorted(found, key=lambda one: (one.time, one.command))

    def add(self, granted: StandingGrant) -> None:
        """Keeps one, unless it is kept, or was revoked already."""
        if not {granted.id, granted.id + _REVOKED} & self._files.names():
            self._files.write(granted.id, granted)

    def revoke(self, grant_id: str) -> None:
        """Ends one for good."""
        self._files.mark(grant_id + _REVOKED)
        self._files.drop(grant_id)
