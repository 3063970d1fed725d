"""Our tools as MCP lists them, made ahead: a client that starts the server waits for them."""

import msgspec

from handrail.protocol.schema import to_mcp_tool
from handrail.runtime.registry import build_tool_set
from handrail.settings import Settings

_HEADER = '''\
"""The tools that a session lists unless its settings say otherwise, by name: each as it goes over the wire.

Generated: `scripts/protocol --write` makes this file of the tools themselves. Do not edit.
"""
# ruff: noqa: E501  each is one message's part

LISTED: dict[str, bytes] = {
'''


def listed() -> str:
    """The text of the module."""
    entries = [
        (tool.spec.name, msgspec.json.encode(to_mcp_tool(tool.spec))) for tool in build_tool_set(Settings()).tools
    ]
    return _HEADER + "".join(f'    "{name}": {entry!r},\n' for name, entry in entries) + "}\n"
