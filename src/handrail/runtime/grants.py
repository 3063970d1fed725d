"""Standing approvals of a session."""

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime

import msgspec

from handrail.policy.config import Grant
from handrail.protocol.decisions import Facts, PathFact
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import Answer, AnswerKind, OpenedFolder, PermissionRequest, Scope, StandingGrant
from handrail.settings import resolve_user_file
from handrail.settings.model import ClientRoots
from handrail.settings.paths import MANAGED_FILE, find_account_home
from handrail.store.database import Database
from handrail.store.grants import GrantedFolders, GrantFiles
from handrail.store.inbox import list_open_answers
from handrail.workspace.facts import find_spelled_folder
from handrail.workspace.roots import Boundary, Root, open_root
from handrail.workspace.workspace import Workspace

# § [runtime.grants] What people said not to be asked about again: kept with their answer, looked up before every
# § command, revoked.

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
        every = {
            (one.scope, one.command): one for store in self._stores.values() for one in reversed(store.list_grants())
        }
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
            listed = store.list_grants()
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


# § [runtime.outside] Folders outside the workspace: opened by a person's answer, listed, and closed again.

OPENING: tuple[AnswerKind, ...] = ("once", "session", "workspace", "deny")
"""The answers where a yes opens a folder: for the call, for the session, or for the workspace."""


def collect_requested_folders(facts: Facts) -> dict[str, list[PathFact]]:
    """The folders outside that a call would need, with what it wants in them."""
    found: dict[str, list[PathFact]] = {}
    for fact in facts.paths:
        if fact.real is None and fact.folder is not None:
            found.setdefault(fact.folder, []).append(fact)
    return found


class OpenedRoots:
    """What people opened to one session. Other processes open and close too: who is about to decide looks again."""

    def __init__(
        self,
        workspace: Workspace,
        stores: dict[Scope, GrantedFolders],
        boundary: Boundary,
        session_id: str,
        *,
        in_force: bool,
    ) -> None:
        self._workspace = workspace
        self._stores = stores
        self._boundary = boundary
        self._session_id = session_id
        self._in_force = in_force
        self._known: tuple[tuple[str, ...], ...] = ()
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Makes the roots those that are open now. Where the settings no longer let people be asked, none is."""
        if not self._in_force:
            return
        with self._lock:
            names = tuple(store.names() for store in self._stores.values())
            if names == self._known:
                return
            roots = self._workspace.root_sets
            folders = sorted(self.listed(), key=lambda folder: folder.access)  # of two, the one for writing counts
            strongest = {folder.path: folder for folder in folders}.values()
            opened = roots.sources["person"]
            roots.replace("person", [root for folder in strongest if (root := self._root(folder, opened))])
            self._known = names

    def listed(self) -> tuple[OpenedFolder, ...]:
        """All that are open to this session: its own, and the workspace's."""
        return tuple(folder for store in self._stores.values() for folder in store.list_folders())

    def close(self, path: str) -> bool:
        """Closes a folder, whoever opened it and for how long; whether it was open."""
        spelled = os.path.abspath(path)
        names = {spelled, os.path.realpath(spelled)}
        closed = [store.remove(name) for store in self._stores.values() for name in names]
        self.refresh()
        return any(closed)

    def open(self, facts: Facts, kind: AnswerKind) -> tuple[Root, ...]:
        """Opens what a call asked for, as far as the answer goes; the roots that are for this call only."""
        asked = [
            self._opened(folder, facts, _SCOPES.get(kind)) for folder, facts in collect_requested_folders(facts).items()
        ]
        with ExitStack() as checked:
            roots = [checked.enter_context(closing(self._checked(folder))) for folder in asked]
            if kind not in _SCOPES:
                checked.pop_all()
                return tuple(roots)
        for folder in asked:
            self._stores[_SCOPES[kind]].add(folder)
        self._known = ()
        self.refresh()
        return ()

    def _opened(self, folder: str, facts: list[PathFact], scope: Scope | None) -> OpenedFolder:
        spelled = (find_spelled_folder(fact.path, fact.outside or "", folder) for fact in facts)
        return OpenedFolder(
            path=folder,
            access="write" if any(fact.access != "read" for fact in facts) else "read",
            scope=scope or "session",
            session_id=self._session_id,
            time=datetime.now(UTC),
            named=next((name for name in spelled if name not in {None, folder}), None),
        )

    def _checked(self, folder: OpenedFolder) -> Root:
        root = self._root(folder, ())
        if root is None:
            raise ToolError("CONFLICT", f"{folder.path} is not the folder any more that was asked about. Call again.")
        return root

    def _root(self, folder: OpenedFolder, open_already: tuple[Root, ...]) -> Root | None:
        """The root of a folder, the one that there is where there is one; None where it may not be opened now."""
        writable = folder.access == "write"
        for root in open_already:
            if (root.path, root.writable) == (folder.path, writable) and root.has_name(folder.named):
                return root
        if self._boundary.find_closed_reason(folder.path):
            return None
        return open_root(folder.path, writable=writable, named=folder.named)


def to_folder_request(request: PermissionRequest, facts: Facts) -> PermissionRequest:
    """The same request, saying which folders a yes to it opens, where it opens any."""
    folders = collect_requested_folders(facts)
    if not folders:
        return request
    writes = any(fact.access != "read" for found in folders.values() for fact in found)
    return msgspec.structs.replace(
        request,
        kind="external_directory",
        pattern=tuple(text for folder in folders for text in (folder, f"{folder}/*")),
        access="write" if writes else "read",
        answers=OPENING,
    )


def build_boundary(*own: str) -> Boundary:
    """What is never opened on this machine, for this user; `own` is what handrail keeps for itself."""
    homes = {os.path.realpath(home) for home in (os.path.expanduser("~"), find_account_home()) if home}
    return Boundary(homes=tuple(sorted(homes)), own=tuple(os.path.realpath(path) for path in own))


# § [runtime.client_roots] The folders that a client says it works on: roots as far as the person's settings let
# § them be.

MAX_CLIENT_ROOTS = 32
"""Folders of one client; each is a descriptor."""
_HOW = 'paths.client_roots = "read-only" (or "writable") in the user file'


def set_client_roots(
    workspace: Workspace, folders: Sequence[str], setting: ClientRoots, state: str, *, restricted: bool
) -> tuple[str, ...]:
    """Makes these the client's roots, in the place of those before; what is not honoured, in words for a person.

    A folder inside the roots changes nothing. One outside is a client's wish, and a client is told what to say by
    whoever wrote its configuration: only the person's own settings open it, and never what nothing opens.
    """
    outside = [real for real in dict.fromkeys(map(os.path.realpath, folders)) if not _is_inside(workspace, real)]
    told: list[str] = []
    kept: list[Root] = []
    boundary = build_boundary(state, resolve_user_file(os.environ), MANAGED_FILE)
    for real in outside[:MAX_CLIENT_ROOTS]:
        if why := _refused(real, setting, boundary, restricted=restricted):
            told.append(f"The client's root {real} is not used: {why}.")
        elif (root := _root(workspace, real, writable=setting == "writable")) is None:
            told.append(f"The client's root {real} is not used: it is no folder that can be opened.")
        else:
            kept.append(root)
    if len(outside) > MAX_CLIENT_ROOTS:
        told.append(
            f"{len(outside) - MAX_CLIENT_ROOTS} more roots of the client are not used: there may be {MAX_CLIENT_ROOTS}."
        )
    if kept or workspace.root_sets.sources["client"]:
        workspace.root_sets.replace("client", kept)
    return tuple(told)


def _is_inside(workspace: Workspace, real: str) -> bool:
    """Whether a folder is in the workspace, or in a root that the settings name."""
    joined = workspace.root_sets.sources["client"]
    given = [root.path for root in workspace.roots if root not in joined]
    return any(real == path or real.startswith(path.rstrip("/") + "/") for path in given)


def _refused(real: str, setting: ClientRoots, boundary: Boundary, *, restricted: bool) -> str:
    if restricted:
        return "the restricted profile works in the workspace alone"
    if shut := boundary.find_closed_reason(real):
        return shut
    return f"it is outside the workspace; {_HOW} lets it be one" if setting == "ignore" else ""


def _root(workspace: Workspace, real: str, *, writable: bool) -> Root | None:
    """The root of a folder, the one that there is where there is one."""
    for root in workspace.root_sets.sources["client"]:
        if (root.path, root.writable) == (real, writable):
            return root
    root = open_root(real, writable=writable)
    if root is not None:
        root.opened_by_person = False  # the settings opened it, and no question goes further
    return root
