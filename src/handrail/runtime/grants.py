"""What people said not to be asked about again: kept with their answer, looked up before every command, revoked."""

import hashlib
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

from handrail.policy.config import Grant
from handrail.protocol.errors import StoreError
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest, Scope, StandingGrant
from handrail.store.database import Database
from handrail.store.grants import GrantFiles
from handrail.store.inbox import list_open_answers

_SCOPES: dict[AnswerKind, Scope] = {"session": "session", "workspace": "workspace"}


class Grants:
    """The grants that count for one session. Other processes grant and revoke too: who is to decide looks again."""

    def __init__(self, stores: Mapping[Scope, GrantFiles]) -> None:
        self._stores = stores
        self._known: tuple[frozenset[str], ...] = ()
        self._current: tuple[Grant, ...] = ()
        self._lock = threading.Lock()

    def current(self) -> tuple[Grant, ...]:
        """Those in force now, as policy wants them. Costs one look into two folders where nothing is new.

        What cannot be looked up is not granted: then a person is asked.
        """
        with self._lock, suppress(StoreError):
            names = tuple(store.names() for store in self._stores.values())
            if names != self._known:
                found = self.listed()
                self._current = tuple(Grant(id=one.id, command=one.command, scope=one.scope) for one in found)
                self._known = names
            return self._current
        return ()

    def listed(self) -> tuple[StandingGrant, ...]:
        """All of them, each class once for the session and once for the workspace."""
        every = {(one.scope, one.command): one for store in self._stores.values() for one in reversed(store.listed())}
        return tuple(sorted(every.values(), key=lambda one: one.time))

    def remember(self, request: PermissionRequest, given: Answer) -> None:
        """Grants what an answer grants. It may be repeated: the same answer is the same grant, and stays revoked."""
        scope = _SCOPES.get(given.kind)
        if scope is None or not request.grants:
            return
        for command in request.grants:
            granted = StandingGrant(
                id=_id(request.id, command),
                command=command,
                scope=scope,
                session_id=request.session_id,
                time=datetime.now(UTC),
            )
            self._stores[scope].add(granted)

    def remember_all(self, database: Database) -> None:
        """Makes up for whoever was killed between writing an answer down and granting what it grants."""
        for request, given in list_open_answers(database):
            self.remember(request, given)

    def revoke(self, grant_id: str) -> StandingGrant | None:
        """Ends a grant, and every other one for the same commands in the same scope; None where it is none."""
        for store in self._stores.values():
            listed = store.listed()
            found = next((one for one in listed if one.id == grant_id), None)
            if found is not None:
                for one in listed:
                    if one.command == found.command:
                        store.revoke(one.id)
                return found
        return None


def _id(request_id: str, command: str) -> str:
    """The same for the same answer, so that nothing is granted twice, and none that others could guess."""
    return f"g-{hashlib.sha256(f'{request_id} {command}'.encode()).hexdigest()[:12]}"
