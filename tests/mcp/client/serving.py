"""Sessions with other servers, for tests: the servers are real, and run where the session starts them."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handrail import Handrail
from handrail.mcp.client.sources import ServerSources, find_sources
from handrail.protocol.results import ToolResult
from handrail.settings import LoadedSettings, load

SERVERS = Path(__file__).parent.parent / "servers"
PYTHON = os.path.realpath(sys.executable)
WAIT = '[mcp]\nwait = "60s"\n'
"""A slow machine is no failure."""


def table(name: str, *words: str, more: str = "") -> str:
    """A server in a settings file."""
    command, *args = words
    return f'[mcp.servers.{name}]\ncommand = "{command}"\nargs = {args!r}\n{more}\n'


def hostile(way: str, more: str = "", name: str = "other") -> str:
    """One of `hostile.py`, in the workspace."""
    return table(name, PYTHON, "hostile.py", way, more=more)


def plain(name: str = "plain", more: str = "") -> str:
    """The one that does nothing wrong."""
    return table(name, PYTHON, "plain.py", more=more)


class Place:
    """A workspace with the servers in it, a settings file and a state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        for script in SERVERS.glob("*.py"):
            shutil.copy(script, self.workspace)
        self.head = f'[sandbox]\ntoolchains = ["{sys.prefix}", "{sys.base_prefix}"]\n'
        self.environ: dict[str, str] = {
            **os.environ,
            "HANDRAIL_STATE_DIR": str(folder / "state"),
            "HANDRAIL_CONFIG": str(folder / "config.toml"),
        }

    def loaded(self, text: str, wait: str = WAIT) -> LoadedSettings:
        """The settings, as a person's own file has them."""
        (self.folder / "config.toml").write_text(wait + self.head + text)
        return load(self.environ, {}, str(self.workspace))

    def found(self, text: str, wait: str = WAIT, **environ: str) -> ServerSources:
        """The sources; who asks for them closes them."""
        return find_sources(self.loaded(text, wait), str(self.workspace), {**self.environ, **environ})

    @contextmanager
    def session(
        self, text: str, wait: str = WAIT, mode: str = "full", environ: Mapping[str, str] | None = None
    ) -> Generator[Handrail]:
        """A session with the servers that a settings file names."""
        with self.opened(self.found(text, wait, **(environ or {})), self.loaded(text, wait), mode=mode) as rail:
            yield rail

    def opened(self, found: ServerSources, loaded: LoadedSettings | None = None, mode: str = "full") -> Handrail:
        """A session with these sources."""
        state = self.folder / "state"
        settings = loaded or self.loaded("")
        return Handrail(
            self.workspace, session="s", settings=settings, mode=mode, state_dir=state, sources=found.sources
        )


def comes_true(what: Callable[[], object], seconds: float = 30.0) -> bool:
    """Whether something is so within a generous time."""
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def code_of(result: ToolResult[Any]) -> str | None:
    """How a call failed; None where it did not."""
    return None if result.error is None else result.error.code
