"""Opens a session, and closes again what was opened when something after it cannot be."""

import os
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from handrail.protocol.errors import UsageError
from handrail.runtime.furnishing import SessionOptions, SessionResources, build_session
from handrail.runtime.session import Session
from handrail.settings import Settings
from handrail.store.audit import AuditChain
from handrail.store.database import Database
from handrail.store.runner import Runner
from handrail.store.state_dir import make_private, save_workspace_path
from handrail.tools.contract import Tool
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.runtime.sources import ToolSource


def open_session(terms: SessionOptions) -> tuple[Session, Database, Runner]:
    """The session on these terms, and what is closed with it besides what it holds itself."""
    if terms.sources:
        from handrail.runtime.foreign.taking_over import check_sources  # noqa: PLC0415  few have other servers

        check_sources(terms.sources)
    root = os.path.realpath(terms.workspace)
    _refuse_overlaps(root, terms)
    custom = (*terms.custom, *_tools_of(terms.settings))
    with ExitStack() as opened:
        ground = _lay_ground(root, terms, opened)
        session = build_session(terms, ground, custom)
        opened.pop_all()
    return session, ground.database, ground.runner


@contextmanager
def close_on_failure(sources: "tuple[ToolSource, ...]") -> Generator[None]:
    """Other servers that are to be a session's: ended where there comes to be none."""
    try:
        yield
    except BaseException:
        if sources:
            from handrail.runtime.foreign.taking_over import close_sources  # noqa: PLC0415  few have other servers

            close_sources(sources)
        raise


def load_project_tools(workspace: str) -> list[Tool]:
    """The tools that a workspace brings, for who trusts it."""
    folder = os.path.join(workspace, ".handrail", "tools")
    if not os.path.isdir(folder):
        return []
    from handrail.runtime.discovery import load_folder_tools  # noqa: PLC0415  few have any

    return load_folder_tools(folder)


def _tools_of(settings: Settings) -> list[Tool]:
    """Custom tools that the user's own settings ask for; a workspace brings none."""
    if not settings.tools.folders and not settings.tools.installed:
        return []
    from handrail.runtime.discovery import load_configured_tools  # noqa: PLC0415  few have any

    return load_configured_tools(settings)


def _lay_ground(root: str, terms: SessionOptions, opened: ExitStack) -> SessionResources:
    """Opens what a session stands on."""
    terms.state.make()
    folder = terms.state.session(root, terms.session_id)
    save_workspace_path(terms.state.home(root), root)
    workspace = opened.enter_context(_open_workspace(terms, folder))
    path, durability = os.path.join(folder, "journal.db"), terms.settings.journal.durability
    return SessionResources(
        root=root,
        folder=folder,
        workspace=workspace,
        database=opened.enter_context(closing(Database(path, durability))),
        runner=opened.enter_context(closing(Runner(folder))),
        chain=opened.enter_context(closing(AuditChain(terms.state.audit))),
    )


def _open_workspace(terms: SessionOptions, folder: str) -> Workspace:
    files = os.path.join(folder, "files")
    make_private(files)
    extra = [Root(path, writable=False) for path in terms.settings.paths.read_only]
    extra += [Root(path) for path in terms.settings.paths.writable]
    kernel = None if terms.resolver is None else terms.resolver == "kernel"
    return Workspace(terms.workspace, *extra, Root(files), kernel=kernel)


def _refuse_overlaps(root: str, terms: SessionOptions) -> None:
    """The agent must not reach its own journal, audit or approvals."""
    own, paths = os.path.realpath(terms.state.path), terms.settings.paths
    for folder in (root, *map(os.path.realpath, (*paths.read_only, *paths.writable))):
        if os.path.commonpath((own, folder)) in {own, folder}:
            text = f"the folder {folder} and the state folder {own} lie in one another. Set HANDRAIL_STATE_DIR."
            raise UsageError(text)
