"""A server that is made with the official SDK, over stdio or, with a port, over HTTP."""

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("on the SDK")


@server.tool()
def add(one: int, other: int) -> int:
    """Adds two numbers."""
    return one + other


@server.tool()
async def announce(ctx: Context, name: str) -> str:
    """Adds a tool, and says so."""
    server.add_tool(lambda: name, name=name, description="Was added.")
    await ctx.notify_tools_changed()
    return f"there is {name} now"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
