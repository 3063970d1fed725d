"""handrail: tools for coding agents that you can watch, check, take back."""

from handrail.protocol.version import VERSION

TYPE_CHECKING = False  # type checkers know the name, and importing typing takes longer than the rest of this module
if TYPE_CHECKING:
    from typing import Any

    from handrail.agent.loop import Agent as Agent
    from handrail.agent.turn import Turn as Turn
    from handrail.agent.turn import TurnLimits as TurnLimits
    from handrail.api import Handrail as Handrail
    from handrail.async_api import AsyncHandrail as AsyncHandrail
    from handrail.edit.diff_parser import parse_diff as parse_diff
    from handrail.protocol.calls import Done as Done
    from handrail.protocol.calls import Parked as Parked
    from handrail.protocol.calls import ToolCall as ToolCall
    from handrail.protocol.errors import HandrailError as HandrailError
    from handrail.protocol.errors import StoreError as StoreError
    from handrail.protocol.errors import ToolError as ToolError
    from handrail.protocol.errors import UsageError as UsageError
    from handrail.protocol.permissions import Answer as Answer
    from handrail.protocol.permissions import PermissionRequest as PermissionRequest
    from handrail.protocol.permissions import Question as Question
    from handrail.protocol.permissions import Reply as Reply
    from handrail.protocol.results import ToolResult as ToolResult
    from handrail.runtime.foreign.server_process import ServerProgram as ServerProgram
    from handrail.runtime.foreign.server_process import ServerPrograms as ServerPrograms
    from handrail.runtime.foreign.server_process import ServerProgramSpec as ServerProgramSpec
    from handrail.runtime.foreign.source import ForeignTool as ForeignTool
    from handrail.runtime.foreign.source import ToolSource as ToolSource
    from handrail.settings import SettingsError as SettingsError
    from handrail.tools.custom import tool as tool
    from handrail.tools.custom import tool_from_definition as tool_from_definition
    from handrail.tools.tool import Context as Context
    from handrail.tools.tool import Output as Output
    from handrail.tools.tool import SourceContext as SourceContext
    from handrail.tools.tool import Tool as Tool

__version__ = VERSION

_PUBLIC_NAMES = {
    "agent.loop": "Agent",
    "agent.turn": "Turn TurnLimits",
    "api": "Handrail",
    "async_api": "AsyncHandrail",
    "edit.diff_parser": "parse_diff",
    "protocol.calls": "Done Parked ToolCall",
    "protocol.errors": "HandrailError StoreError ToolError UsageError",
    "protocol.permissions": "Answer PermissionRequest Question Reply",
    "protocol.results": "ToolResult",
    "runtime.foreign.server_process": "ServerProgram ServerProgramSpec ServerPrograms",
    "runtime.foreign.source": "ForeignTool ToolSource",
    "settings": "SettingsError",
    "tools.custom": "tool tool_from_definition",
    "tools.tool": "Context Output SourceContext Tool",
}
"""The public names of each module."""
_MODULES = {name: module for module, names in _PUBLIC_NAMES.items() for name in names.split()}


def __getattr__(name: str) -> "Any":
    """Loads a public name on first use, so that `import handrail` stays cheap."""
    if name == "__all__":
        return [*_MODULES, "__version__"]
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'handrail' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  only when a name is used

    value = getattr(import_module(f"handrail.{module}"), name)
    globals()[name] = value
    return value
