"""handrail: tools for coding agents that you can watch, check and take back."""

from handrail.protocol.version import VERSION

TYPE_CHECKING = False  # what reads types knows the name; to load typing takes longer than all the rest of this
if TYPE_CHECKING:
    from typing import Any

    from handrail.agent.loop import Agent
    from handrail.agent.turn import Turn, TurnLimits
    from handrail.api import Handrail
    from handrail.async_api import AsyncHandrail
    from handrail.protocol.calls import Done, Parked, ToolCall
    from handrail.protocol.errors import HandrailError, StoreError, ToolError, UsageError
    from handrail.protocol.permissions import Answer, PermissionRequest, Question, Reply
    from handrail.protocol.results import ToolResult
    from handrail.settings import SettingsError
    from handrail.tools.custom import tool, tool_from_definition
    from handrail.tools.tool import Context, Output, Tool

__version__ = VERSION

_HOMES = {
    "Agent": "agent.loop",
    "Answer": "protocol.permissions",
    "AsyncHandrail": "async_api",
    "Context": "tools.tool",
    "Done": "protocol.calls",
    "Handrail": "api",
    "HandrailError": "protocol.errors",
    "Output": "tools.tool",
    "Parked": "protocol.calls",
    "PermissionRequest": "protocol.permissions",
    "Question": "protocol.permissions",
    "Reply": "protocol.permissions",
    "SettingsError": "settings",
    "StoreError": "protocol.errors",
    "Tool": "tools.tool",
    "ToolCall": "protocol.calls",
    "ToolError": "protocol.errors",
    "ToolResult": "protocol.results",
    "Turn": "agent.turn",
    "TurnLimits": "agent.turn",
    "UsageError": "protocol.errors",
    "tool": "tools.custom",
    "tool_from_definition": "tools.custom",
}

__all__ = [
    "Agent",
    "Answer",
    "AsyncHandrail",
    "Context",
    "Done",
    "Handrail",
    "HandrailError",
    "Output",
    "Parked",
    "PermissionRequest",
    "Question",
    "Reply",
    "SettingsError",
    "StoreError",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "Turn",
    "TurnLimits",
    "UsageError",
    "__version__",
    "tool",
    "tool_from_definition",
]


def __getattr__(name: str) -> "Any":
    """Loads a name when it is first asked for, so that `import handrail` costs next to nothing."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'handrail' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    value = getattr(import_module(f"handrail.{home}"), name)
    globals()[name] = value
    return value
