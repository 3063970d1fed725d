"""The same one tool on the official SDK, written as its documentation begins."""

import sys
from pathlib import Path

from mcp.server import MCPServer

ROOT = Path(sys.argv[1]).resolve()
server = MCPServer("plain")


@server.tool()
def read(path: str) -> str:
    """Reads a text file."""
    place = (ROOT / path).resolve()
    if not place.is_relative_to(ROOT):
        raise ValueError(f"{path} is not below {ROOT}")
    return place.read_text()


server.run()
