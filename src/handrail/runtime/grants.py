"""Standing approvals of a session: for commands, for folders outside the workspace."""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime

import msgspec

from handrail.policy.config import Grant
from handrail.protocol.decisions import Facts, PathFact
from handrail.protocol.digest import sha256
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import (
    Answer,
    AnswerKind,
    OpenedFolder,
    PermissionRequest,
    Scope,
    StandingGrant,
)
from handrail.settings import resolve_user_file
from handrail.settings.model import ClientRoots
from handrail.settings.paths import MANAGED_FILE, find_account_home
from handrail.store.grants import GrantedFolders, GrantFiles
from handrail.workspace.facts import find_spelled_folder
from handrail.workspace.roots import Boundary, Root, is_inside, open_root
from handrail.workspace.workspace import Workspace

MAX_CLIENT_ROOTS = 32
"""Folders of one client. Each is an open descriptor."""
_SCOPES: dict[AnswerKind, Scope] = {"session": "session", "workspace": "workspace", "edits": "session"}
_FOLDER_ANSWERS: tuple[AnswerKind, ...] = ("once", "session", "workspace", "deny")
_SETTING_HINT = 'paths.client_roots = "read-only" (or "writable") in the user file'


class Grants:
    """The granted commands of a session. Other processes grant and revoke too, so `current` reads them again."""

    def __init__(self, stores: Mapping[Scope, GrantFiles]) -> None:
        self._stores = stores
        self._known: tuple[frozenset[str], ...] = ()
        self._current: tuple[Grant, ...] = ()
        self._lock = threading.Lock()

    def current(self) -> tuple[Grant, ...]:
        """The grants in force. Nothing is granted if they cannot be read."""
        with self._lock, suppress(StoreError):
            names = tuple(store.names() for store in self._stores.values())
            if names != self._known:
                grants = self.listed()
                self._current = tuple(Grant(id=one.id, command=one.command, scope=one.scope) for one in grants)
                self._known = names
            return self._current
        return ()

    def listed(self) -> tuple[StandingGrant, ...]:
        """All grants, each command once for the session and once for the workspace."""
        every = {
            (one.scope, one.command): one for store in self._stores.values() for one in reversed(store.list_grants())
        }
        return tuple(sorted(every.values(), key=lambda one: one.time))

    def remember(self, request: PermissionRequest, given: Answer) -> None:
        """Stores the grants of an answer. Repeating it changes nothing, and a revoked grant stays revoked."""
        scope = _SCOPES.get(given.kind)
        if scope is None:
            return
        for command in (StandingGrant.EDITS,) if given.kind == "edits" else given.grants or request.grants:
            # The id is the same for the same answer, and nobody can guess it.
            digest = sha256(f"{request.id} {command}".encode()).hexdigest()[:12]
            grant = StandingGrant(
                id=f"g-{digest}",
                command=command,
                scope=scope,
                session_id=request.session_id,
                time=datetime.now(UTC),
            )
            self._stores[scope].add(grant)

    def revoke(self, grant_id: str) -> StandingGrant | None:
        """Revokes a grant, with all others of the same command and scope. None if the id is unknown."""
        for store in self._stores.values():
            listed = store.list_grants()
            grant = next((one for one in listed if one.id == grant_id), None)
            if grant is not None:
                for one in listed:
                    if one.command == grant.command:
                        store.revoke(one.id)
                return grant
        return None


class OpenedRoots:
    """The folders outside the workspace that people opened to a session. Other processes open and close them too."""

    def __init__(
        self,
        workspace: Workspace,
        stores: dict[Scope, GrantedFolders],
        boundary: Boundary,
        session_id: str,
        *,
        in_force: bool,
    ) -> None:
        """`in_force` is false if the settings let no folder be opened."""
        self._workspace = workspace
        self._stores = stores
        self._boundary = boundary
        self._session_id = session_id
        self._in_force = in_force
        self._known: tuple[tuple[str, ...], ...] = ()
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Makes the folders that are open now roots of the workspace."""
        if not self._in_force:
            return
        with self._lock:
            names = tuple(store.names() for store in self._stores.values())
            if names == self._known:
                return
            root_sets = self._workspace.root_sets
            folders = sorted(self.listed(), key=lambda folder: folder.access)  # write access comes last and wins
            strongest = {folder.path: folder for folder in folders}.values()
            opened = root_sets.sources["person"]
            root_sets.replace("person", [root for folder in strongest if (root := self._open_root(folder, opened))])
            self._known = names

    def listed(self) -> tuple[OpenedFolder, ...]:
        """All folders that are open to the session, or to the workspace."""
        return tuple(folder for store in self._stores.values() for folder in store.list_folders())

    def close(self, path: str) -> bool:
        """Closes a folder in all scopes. Returns whether it was open."""
        spelled = os.path.abspath(path)
        names = {spelled, os.path.realpath(spelled)}
        closed = [store.remove(name) for store in self._stores.values() for name in names]
        self.refresh()
        return any(closed)

    def open(self, facts: Facts, kind: AnswerKind) -> tuple[Root, ...]:
        """Opens the folders that a call asked for. Returns the roots that are for this call only."""
        scope = _SCOPES.get(kind)
        requested = [
            self._build_folder(path, uses, scope or "session")
            for path, uses in collect_requested_folders(facts).items()
        ]
        with ExitStack() as checked:
            roots = [checked.enter_context(closing(self._check(folder))) for folder in requested]
            if scope is None:
                checked.pop_all()
                return tuple(roots)
        for folder in requested:
            self._stores[scope].add(folder)
        self._known = ()
        self.refresh()
        return ()

    def _build_folder(self, path: str, uses: list[PathFact], scope: Scope) -> OpenedFolder:
        spelled = (find_spelled_folder(use.path, use.outside or "", path) for use in uses)
        return OpenedFolder(
            path=path,
            access="write" if any(use.access != "read" for use in uses) else "read",
            scope=scope,
            session_id=self._session_id,
            time=datetime.now(UTC),
            named=next((name for name in spelled if name not in {None, path}), None),
        )

    def _check(self, folder: OpenedFolder) -> Root:
        root = self._open_root(folder, ())
        if root is None:
            raise ToolError("CONFLICT", f"{folder.path} is no longer the folder of the request. Call again.")
        return root

    def _open_root(self, folder: OpenedFolder, opened: tuple[Root, ...]) -> Root | None:
        """The root of a folder, from those that are open already or a new one. None if it may not be opened now."""
        writable = folder.access == "write"
        for root in opened:
            if (root.path, root.writable) == (folder.path, writable) and root.has_name(folder.named):
                return root
        if self._boundary.find_closed_reason(folder.path):
            return None
        return open_root(folder.path, writable=writable, named=folder.named)


def collect_requested_folders(facts: Facts) -> dict[str, list[PathFact]]:
    """The folders outside the workspace that a call needs, each with the paths in it."""
    folders: dict[str, list[PathFact]] = {}
    for fact in facts.paths:
        if fact.real is None and fact.folder is not None:
            folders.setdefault(fact.folder, []).append(fact)
    return folders


def to_folder_request(request: PermissionRequest, facts: Facts) -> PermissionRequest:
    """The request with the folders that an approval opens."""
    folders = collect_requested_folders(facts)
    if not folders:
        return request
    writes = any(use.access != "read" for uses in folders.values() for use in uses)
    return msgspec.structs.replace(
        request,
        kind="external_directory",
        pattern=tuple(text for folder in folders for text in (folder, f"{folder}/*")),
        access="write" if writes else "read",
        answers=_FOLDER_ANSWERS,
    )


def build_boundary(state: str) -> Boundary:
    """The folders that are never opened, the state folder of handrail among them."""
    homes = {os.path.realpath(home) for home in (os.path.expanduser("~"), find_account_home()) if home}
    own = (state, resolve_user_file(os.environ), MANAGED_FILE)
    return Boundary(homes=tuple(sorted(homes)), own=tuple(map(os.path.realpath, own)))


def set_client_roots(
    workspace: Workspace, folders: Sequence[str], setting: ClientRoots, state: str, *, restricted: bool
) -> tuple[str, ...]:
    """Replaces the roots of the client. Returns a message for each folder that is not used.

    A folder inside the roots changes nothing. One outside is opened only if the person's own settings allow it,
    because anybody who configures the client chooses its folders.
    """
    client_roots = workspace.root_sets.sources["client"]
    given = [root.path for root in workspace.roots if root not in client_roots]
    real_paths = dict.fromkeys(map(os.path.realpath, folders))
    outside = [real for real in real_paths if not any(is_inside(real, path) for path in given)]
    messages: list[str] = []
    roots: list[Root] = []
    boundary = build_boundary(state)
    for real in outside[:MAX_CLIENT_ROOTS]:
        if problem := _find_client_problem(real, setting, boundary, restricted=restricted):
            messages.append(f"The client's root {real} is not used: {problem}.")
        elif (root := _open_client_root(client_roots, real, writable=setting == "writable")) is None:
            messages.append(f"The client's root {real} is not used: it cannot be opened as a folder.")
        else:
            roots.append(root)
    if (more := len(outside) - MAX_CLIENT_ROOTS) > 0:
        messages.append(f"{more} more roots of the client are not used: there may be {MAX_CLIENT_ROOTS}.")
    if roots or client_roots:
        workspace.root_sets.replace("client", roots)
    return tuple(messages)


def _find_client_problem(real: str, setting: ClientRoots, boundary: Boundary, *, restricted: bool) -> str:
    if restricted:
        return "the restricted profile works only in the workspace"
    if reason := boundary.find_closed_reason(real):
        return reason
    return f"it is outside the workspace; {_SETTING_HINT} allows it" if setting == "ignore" else ""


def _open_client_root(client_roots: Sequence[Root], real: str, *, writable: bool) -> Root | None:
    """The root of a folder, from those that are open already or a new one."""
    for root in client_roots:
        if (root.path, root.writable) == (real, writable):
            return root
    root = open_root(real, writable=writable)
    if root is not None:
        root.opened_by_person = False  # the settings opened it, so no request extends it
    return root
