"""Folders outside the workspace: opened by a person's answer, listed, and closed again."""

import os
import threading
from contextlib import ExitStack, closing
from datetime import UTC, datetime

import msgspec

from handrail.protocol.decisions import Facts, PathFact
from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import AnswerKind, OpenedFolder, PermissionRequest, Scope
from handrail.settings.paths import find_account_home
from handrail.store.grants import GrantedFolders
from handrail.workspace.facts import find_spelled_folder
from handrail.workspace.roots import Boundary, Root, open_root
from handrail.workspace.workspace import Workspace

OPENING: tuple[AnswerKind, ...] = ("once", "session", "workspace", "deny")
"""The answers where a yes opens a folder: for the call, for the session, or for the workspace."""
_SCOPES: dict[AnswerKind, Scope] = {"session": "session", "workspace": "workspace"}


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
        return tuple(folder for store in self._stores.values() for folder in store.listed())

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
