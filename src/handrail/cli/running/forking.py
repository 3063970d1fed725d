"""A session that begins where another one is."""

from handrail.api import Handrail
from handrail.settings import LoadedSettings


def fork(source: str, session: str, workspace: str, loaded: LoadedSettings) -> str:
    """Makes the new session; its id."""
    with Handrail(workspace, session=source, settings=loaded, on_permission=lambda _: None) as rail:
        return rail.fork_session(session)
