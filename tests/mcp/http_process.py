"""`handrail mcp --http` as a process of its own, as a person starts it."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from stdio_process import environment

TOKEN = "a-token-of-the-tests-0123456789"
PATIENCE = 60.0


class HttpProcess:
    """A server over HTTP; it ends with the block, and must have been able to."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        token: str | None = TOKEN,
        words: list[str] | None = None,
        variables: dict[str, str] | None = None,
    ) -> None:
        told = {} if token is None else {"HANDRAIL_TOKEN": token}
        workspace = folder / "workspace"
        workspace.mkdir(exist_ok=True)
        started = words or [sys.executable, "-m", "handrail", "mcp", "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*started, "--workspace", str(workspace), *options],
            env={**(variables or environment(folder)), **told},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.folder = folder
        self.workspace = workspace
        self.printed = ""
        """What it wrote to stdout, once it has ended."""
        self.said: list[str] = []
        self._told = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._told.wait(PATIENCE)
        found = re.search(r"http://\S+", "".join(self.said))
        if found is None:
            self.__exit__()
            raise AssertionError(f"it does not serve: {self.said}")
        self.url = found[0]
        self.token = token or re.findall(r"Bearer (\S+)", "".join(self.said))[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        with self.process.stdout:
            self.printed = self.process.stdout.read()

    @property
    def port(self) -> int:
        """Where it listens."""
        return httpx2.URL(self.url).port or 0

    @property
    def headers(self) -> dict[str, str]:
        """What lets a client in."""
        return {"Authorization": f"Bearer {self.token}"}

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends it by a signal; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    @asynccontextmanager
    async def client(self, era: str = "legacy", patience: float = PATIENCE, **options: Any) -> AsyncIterator[Client]:
        """A client of the official SDK: `legacy` shakes hands, `auto` speaks 2026-07-28."""
        async with (
            httpx2.AsyncClient(headers=self.headers, timeout=patience) as web,
            Client(streamable_http_client(self.url, http_client=web), mode=era, **options) as client,
        ):
            yield client

    def approvals(self, *words: str) -> Any:
        """What `handrail approvals` says in another terminal."""
        command = [sys.executable, "-m", "handrail", "approvals", *words, "--workspace", str(self.workspace), "--json"]
        done = subprocess.run(command, env=environment(self.folder), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def waiting(self) -> str:
        """The id of the request that waits, as soon as there is one."""
        until = time.monotonic() + PATIENCE
        while not (found := self.approvals()["waiting"]):
            assert time.monotonic() < until, self.said
        return found[0]["id"]

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                self.said.append(line)
                if "Authorization" in line:
                    self._told.set()
        self._told.set()
