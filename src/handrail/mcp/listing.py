"""Our tools as the protocol lists them."""

from typing import Any

from handrail.protocol.tool import ToolSpec, mcp_tool


def tool_entry(spec: ToolSpec) -> dict[str, Any]:
    """One tool: what it takes, what it gives (a whole result of ours), and hints about what it does. Its schemas are
    made once for all: nobody changes anything in them."""
    return mcp_tool(spec)
