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
FILES = 200
"""Files that are read once each."""
HERE = Path(__file__).parent
Read = tuple[str, Mapping[str, Any]]
"""A tool, and what it is told."""


class Server(NamedTuple):
    command: list[str]
    environment: Mapping[str, str]
    read: Read
    """Reads the text file that is read again and again."""

    def read_once(self, number: int) -> Read:
        """Reads one of the files that are read once each."""
        tool, told = self.read
        return tool, {"path": os.path.join(os.path.dirname(told["path"]), f"once-{number}.txt")}


def found_servers(folder: Path) -> dict[str, Server]:
    """All that can run here, with a workspace and a state folder below this one; who is left out is told."""
    workspace = folder / "workspace"
    (workspace / "src").mkdir(parents=True)
    for name in ("sample.txt", *(f"once-{number}.txt" for number in range(FILES))):
        (workspace / "src" / name).write_text(TEXT)
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
