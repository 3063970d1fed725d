"""The servers that are compared: how each is started, and how it is asked to read one small file."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.mcp.npm_server import installed_script, node

HANDRAIL = "handrail"
NPM = "npm filesystem server"
SDK = "official SDK"
STANDARD_LIBRARY = "standard library"
TEXT = "The quick brown fox jumps over the lazy dog.\n" * 10
HERE = Path(__file__).parent


class Server(NamedTuple):
    command: list[str]
    environment: Mapping[str, str]
    read: tuple[str, Mapping[str, Any]]
    """The tool that reads a text file, and what it is told."""


def found_servers(folder: Path) -> dict[str, Server]:
    """All that can run here, with a workspace and a state folder below this one; who is left out is told."""
    workspace = folder / "workspace"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "sample.txt").write_text(TEXT)
    environment = os.environ | {"HANDRAIL_STATE_DIR": str(folder / "state")}
    inside, full = {"path": "src/sample.txt"}, {"path": str(workspace / "src" / "sample.txt")}
    development = os.environ["HANDRAIL_BENCH_DEVELOPMENT"]
    ours = [os.environ["HANDRAIL_BENCH_COMMAND"], "mcp", "--workspace", str(workspace)]
    plain = [sys.executable, str(HERE / "standard_library_server.py"), str(workspace)]
    servers = {
        HANDRAIL: Server(ours, environment, ("read", inside)),
        STANDARD_LIBRARY: Server(plain, environment, ("read", inside)),
    }
    servers[SDK] = Server([development, str(HERE / "sdk_server.py"), str(workspace)], environment, ("read", inside))
    if script := installed_script():
        servers[NPM] = Server([node(), str(script), str(workspace)], environment, ("read_text_file", full))
    return servers
