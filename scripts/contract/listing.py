"""The default tools as MCP lists them. A client that starts the server waits for this list."""

import msgspec

from handrail.protocol.schema import to_mcp_tool
from handrail.runtime.registry import build_tool_set
from handrail.settings import Settings


def build_default_tools() -> str:
    """The text of the file: an object with one tool a line, each entry as the server sends it."""
    specs = [tool.spec for tool in build_tool_set(Settings()).tools]
    lines = [f'"{spec.name}": {msgspec.json.encode(to_mcp_tool(spec)).decode()}' for spec in specs]
    return "{\n" + ",\n".join(lines) + "\n}\n"
