"""handrail: tools for coding agents that you can watch, check and take back."""

from handrail.protocol.version import VERSION

TYPE_CHECKING = False  # what reads types knows the name; to load typing takes longer than all the rest of this
if TYPE_CHECKING:
    from typing import Any

    from handrail.agent.limits import TurnLimits
    from handrail.agent.loop import Agent
    from handrail.agent.turn import Turn
    from handrail.async_rail import AsyncHandrail
    from handrail.protocol.calls import Done, Parked, ToolCall
    from handrail.protocol.errors import HandrailError, StoreError, ToolError, UsageError
    from handrail.protocol.permissions import Answer, PermissionRequest, Question, Reply
    from handrail.protocol.results import ToolResult
    from handrail.rail import Handrail
    from handrail.settings import SettingsError
    from handrail.tools.contract import Context, Output, Tool
    from handrail.tools.custom import tool
    from handrail.tools.definition import tool_from_definition

__version__ = VERSION

_HOMES = {
    "Agent": "agent.loop",
    "Answer": "protocol.permissions",
    "AsyncHandrail": "async_rail",
    "Context": "tools.contract",
    "Done": "protocol.calls",
    "Handrail": "rail",
    "HandrailError": "protocol.errors",
    "Output": "tools.contract",
    "Parked": "protocol.calls",
    "PermissionRequest": "protocol.permissions",
    "Question": "protocol.permissions",
    "Reply": "protocol.permissions",
    "SettingsError": "settings",
    "StoreError": "protocol.errors",
    "Tool": "tools.contract",
    "ToolCall": "protocol.calls",
    "ToolError": "protocol.errors",
    "ToolResult": "protocol.results",
    "Turn": "agent.turn",
    "TurnLimits": "agent.limits",
    "UsageError": "protocol.errors",
    "tool": "tools.custom",
    "tool_from_definition": "tools.definition",
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
