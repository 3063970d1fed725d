"""`handrail serve` as a process of its own, as a person starts it."""

import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import httpx2
from websockets.sync.client import ClientConnection, connect

from apart import environment_in

PATIENCE = 60.0
TOKEN = "a-token-of-the-tests-0123456789"


class ServeProcess:
    """A server on a free port. It ends with the block."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        token: str | None = TOKEN,
        settings: str = "",
        port: int = 0,
        program: Sequence[str] = ("-m", "handrail"),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """`program`: another way to start handrail."""
        self.environment = environment_in(folder, **({} if token is None else {"HANDRAIL_TOKEN": token}))
        self.environment |= variables or {}
        self.workspace = folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(settings)
        self.environment["HANDRAIL_CONFIG"] = str(folder / "config.toml")
        words = ("serve", "--workspace", str(self.workspace), "--listen", f"127.0.0.1:{port}", *options)
        self.process = subprocess.Popen(
            [sys.executable, *program, *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.printed = self.process.stdout.readline()
        """The line with the address."""
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        found = re.fullmatch(r"(https?)://([^/]+):(\d+)/(?:#token=(\S+))?\n", self.printed)
        if found is None:
            self.__exit__()
            raise AssertionError(f"it does not serve: {self.said}")
        self.port = int(found[3])
        self.address = f"{found[1]}://{found[2]}:{found[3]}"
        self.token = token or found[4]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stderr:
            self.said.extend(stderr)

    def client(self, token: str | None = None, **options: Any) -> httpx2.Client:
        """A client with a token: the one of the start, or another. An empty one: none."""
        headers = {"Authorization": f"Bearer {token or self.token}"} if token != "" else {}
        return httpx2.Client(base_url=self.address, headers=headers, timeout=PATIENCE, **options)

    def follow(self, task: str, token: str | None = None, **headers: str) -> ClientConnection:
        """A WebSocket to a task."""
        given = {"Authorization": f"Bearer {token or self.token}"} if token != "" else {}
        url = f"ws://127.0.0.1:{self.port}/ws/{task}"
        return connect(url, additional_headers=given | headers, open_timeout=PATIENCE, proxy=None)

    def send(self, request: bytes) -> bytes:
        """The answer to bytes that no client would send, until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            connection.sendall(request)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
            return answer

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Another command of handrail, with the same state folder."""
        whole = [sys.executable, "-m", "handrail", *words]
        environment = {name: value for name, value in self.environment.items() if name != "HANDRAIL_TOKEN"}
        return subprocess.run(whole, env=environment, capture_output=True, text=True, check=False)

    def add_token(self, name: str, role: str) -> str:
        """A new named token."""
        added = self.command("serve", "tokens", "add", name, "--role", role)
        assert added.returncode == 0, added.stderr
        return added.stdout.strip()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends it by a signal. Its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)
