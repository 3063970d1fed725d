"""What the program that serves decides for all sessions: where they work, by which settings, with which model."""

from collections.abc import Callable

import msgspec

from handrail.agent.turn import TurnLimits
from handrail.models.base import Model
from handrail.runtime.foreign.source import ToolSource
from handrail.settings import LoadedSettings


class EditorServer(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server that the editor wants the agent to use: a command, or an address; neither where it is reached in
    a way that was not offered."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    """Of its environment, besides what every such server gets."""
    url: str | None = None
    headers: dict[str, str] = {}


class AgentHost(msgspec.Struct, frozen=True, kw_only=True):
    """Each of these may raise UsageError, with words for the person."""

    workspace: Callable[[str], str]
    """The folder for a session, by the one that the editor names."""
    only: str | None = None
    """The folder of all sessions, where the person named one."""
    settings: Callable[[str], LoadedSettings]
    """What counts in a workspace."""
    limits: Callable[[LoadedSettings], TurnLimits]
    models: Callable[[LoadedSettings, str | None], tuple[str, ...]]
    """The names of the models that a session may talk to, by whom it talked to before; the one it does is the first."""
    model: Callable[[LoadedSettings, str | None], Model]
    """The model of a name; None where there is no name, which is refused with words on how to choose one."""
    sources: Callable[[LoadedSettings, str, tuple[EditorServer, ...]], tuple[ToolSource, ...]]
    """The tools of other servers: those of the settings, and those that the editor names."""
    serves_http: bool = False
    """Whether those may be servers with an address."""
