"""The context of a request: its server, caller, parameters."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.protocol.decisions import MODES, Mode
from handrail.server.options import ServerOptions
from handrail.server.wire import ApiCaller
from handrail.settings import LoadedSettings
from handrail.settings.load import find_managed_mode
from handrail.state import StoredState

if TYPE_CHECKING:
    from handrail.server.runner import TaskRunner


class ServerContext(NamedTuple):
    """What all handlers share."""

    options: ServerOptions
    runner: "TaskRunner"
    loop: asyncio.AbstractEventLoop
    pool: ThreadPoolExecutor
    """The threads of handlers."""

    @property
    def state(self) -> StoredState:
        return self.options.state

    @property
    def workspaces(self) -> tuple[str, ...]:
        return self.options.workspaces

    def resolve_workspace(self, named: str | None = None) -> str:
        """One of the served folders by its path, or the default one. ApiFailure for any other."""
        return self.options.resolve_workspace(named)

    def list_workspaces(self, named: str | None = None) -> tuple[str, ...]:
        """The served folder of this path, or all of them."""
        return self.workspaces if named is None else (self.resolve_workspace(named),)

    def load_settings(self, workspace: str, mode: Mode | None = None) -> LoadedSettings:
        return self.options.load_settings(workspace, mode)


class Request(NamedTuple):
    """One request, checked and decoded."""

    server: ServerContext
    caller: ApiCaller
    params: Mapping[str, str]
    """The parts of the path in braces."""
    query: Mapping[str, Any]
    """The parameters that the route declares. An absent one has its default."""
    body: Any = None
    """The struct of the route."""


def list_modes(caller: ApiCaller, loaded: LoadedSettings) -> tuple[Mode, ...]:
    """The modes that a caller may choose, the default first. Only an admin may choose `full`."""
    if caller.role == "viewer":
        return ()
    default: Mode = loaded.settings.mode
    modes: list[Mode] = [default]
    for mode in MODES[: MODES.index(find_managed_mode(loaded)) + 1]:
        if mode != default and (mode != "full" or caller.role == "admin"):
            modes.append(mode)
    return tuple(modes)
