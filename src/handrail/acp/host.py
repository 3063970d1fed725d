"""The contract of the program that serves an editor."""

from typing import Protocol

import msgspec

from handrail import ToolSource
from handrail.agent.turn import TurnLimits
from handrail.models.base import Model
from handrail.settings import LoadedSettings


class EditorServer(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server of the editor: a command or an address. Neither if the agent does not support its transport."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    """Of its environment, besides those that every server gets."""
    url: str | None = None
    headers: dict[str, str] = {}


class AgentHost(Protocol):
    """Decides for all sessions where they work, with which settings and which model.

    Each method may raise UsageError with a text for the person.
    """

    @property
    def only_workspace(self) -> str | None:
        """The folder of all sessions, if the person named one."""
        ...

    @property
    def has_http_servers(self) -> bool:
        """Whether servers of the editor can have an address."""
        ...

    def resolve_workspace(self, cwd: str, /) -> str:
        """The folder of a session for the folder that the editor names."""
        ...

    def load_settings(self, workspace: str, /) -> LoadedSettings: ...

    def get_limits(self, loaded: LoadedSettings, /) -> TurnLimits: ...

    def list_models(self, loaded: LoadedSettings, last: str | None, /) -> tuple[str, ...]:
        """The names of the models to choose from, the preselected one first. `last`: the last one of the session."""
        ...

    def open_model(self, loaded: LoadedSettings, name: str | None, /) -> Model:
        """The model of a name. None is refused with a text on how to choose one."""
        ...

    def open_sources(
        self, loaded: LoadedSettings, workspace: str, servers: tuple[EditorServer, ...], /
    ) -> tuple[ToolSource, ...]:
        """The tools of other servers: those of the settings, and those that the editor names."""
        ...
