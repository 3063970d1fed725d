"""The options that a server was started with."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from handrail.protocol.decisions import Mode
from handrail.protocol.wire import Json
from handrail.settings import LoadedSettings
from handrail.state import StoredState

if TYPE_CHECKING:
    from handrail import ToolSource
    from handrail.agent.turn import TurnLimits
    from handrail.models.base import Model


class ApiFailure(Exception):  # noqa: N818  ApiError is its message
    """A refusal of a request. The client gets it as an `ApiError` with this status."""

    def __init__(
        self, status: int, code: str, message: str, details: Json = None, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.headers = headers


class TaskFolder(NamedTuple):
    """Where a task is stored."""

    id: str
    workspace: str
    path: str


class ServerHost(Protocol):
    """Decides for all tasks with which settings, models and tools they work.

    Each method may raise UsageError with a text for the client.
    """

    def load_settings(self, workspace: str, mode: Mode | None = None, /) -> LoadedSettings:
        """The settings of a task. `mode`: the one that the caller chose."""
        ...

    def get_limits(self, loaded: LoadedSettings, /) -> "TurnLimits": ...

    def list_models(self, loaded: LoadedSettings, /) -> tuple[str, ...]:
        """The names of the models to choose from, the default first."""
        ...

    def open_model(self, loaded: LoadedSettings, name: str | None = None, /) -> "Model":
        """The model of a name. None is the default."""
        ...

    def open_sources(self, loaded: LoadedSettings, workspace: str, /) -> "tuple[ToolSource, ...]":
        """The tools of the MCP servers in the settings."""
        ...


class ServerOptions(NamedTuple):
    state: StoredState
    workspaces: tuple[str, ...]
    """Real paths of the folders that tasks may work in, the default first."""
    host: ServerHost
    note: Callable[[str], None]
    """Takes lines for the operator."""
    direct_calls: bool = False
    """Whether operators may run calls without a model ([server] direct_calls)."""
    dialect: str | None = None
    """The dialect of events on the wire, and of the tools of new tasks."""
    mode: Mode | None = None
    """The default mode of new tasks. None: that of the settings."""
    slow_seconds: float = 10.0
    """How long a client may take to read a batch of events. Then its WebSocket is closed."""

    def resolve_workspace(self, named: str | None = None) -> str:
        """One of the served folders by its path, or the default one. ApiFailure for any other."""
        if named is None:
            return self.workspaces[0]
        if named in self.workspaces:
            return named
        raise ApiFailure(404, "NOT_FOUND", "The server does not serve this workspace. GET /api/info lists them.")

    def list_workspaces(self, named: str | None = None) -> tuple[str, ...]:
        """The served folder of this path, or all of them."""
        return self.workspaces if named is None else (self.resolve_workspace(named),)

    def find_folder(self, workspace: str) -> str:
        """The folder with the files of a workspace."""
        return workspace

    def load_settings(self, workspace: str, mode: Mode | None = None) -> LoadedSettings:
        return self.host.load_settings(workspace, mode or self.mode)
