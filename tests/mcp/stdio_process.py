"""`handrail mcp` as a process of its own, and a client that can say anything to it."""

import contextlib
import itertools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from apart import environment_in

PATIENCE = 60.0
MODERN = "2026-07-28"
_KEY = "io.modelcontextprotocol/"


def environment(folder: Path, **more: str) -> dict[str, str]:
    """What a server gets: nobody is told on the desktop."""
    return environment_in(folder, HANDRAIL_NOTIFY="off", **more)


def envelope(**more: Any) -> dict[str, Any]:
    """What a request says about itself where there is no handshake."""
    info = {"name": "test client", "version": "1"}
    own = {f"{_KEY}protocolVersion": MODERN, f"{_KEY}clientInfo": info, f"{_KEY}clientCapabilities": {}}
    return {**own, **{name if name == "progressToken" else f"{_KEY}{name}": value for name, value in more.items()}}


class Server:
    """A server, and the client at its other end. What came is kept; nothing is answered unless a test does."""

    def __init__(self, folder: Path, *options: str, mode: str = "full", **more: str) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        words = ["mcp", "--workspace", str(self.workspace), "--mode", mode, *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "handrail", *words],
            env=environment(folder, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.came: list[dict[str, Any]] = []
        self._ends_with = 0
        self.errors = b""
        """What it wrote to stderr, once it has ended."""
        self._answers: dict[Any, dict[str, Any]] = {}
        """The first that came of each id: a test may have thousands."""
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._ended = False
        self._readers = [threading.Thread(target=read) for read in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.process.poll() is None and kind is not None:
            self.process.kill()
        code = self.close()
        assert kind is not None or code == self._ends_with

    # Saying

    def write(self, data: bytes) -> None:
        """Says anything at all."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        """Says one message."""
        self.write(json.dumps(message).encode() + b"\n")

    def request(self, method: str, params: dict[str, Any] | None = None) -> str:
        """Asks for something; the id of the request."""
        number = f"request {next(self._numbers)}"
        self.send({"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})})
        return number

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def call(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> str:
        """Calls a tool; the id of the request."""
        return self.request("tools/call", {"name": name, "arguments": arguments or {}, **more})

    def initialize(self, version: str = "2025-11-25", name: str = "test client", **able: Any) -> dict[str, Any]:
        """Greets it; what it says of itself."""
        info = {"name": name, "version": "1"}
        asked = {"protocolVersion": version, "capabilities": able, "clientInfo": info}
        result = self.result(self.request("initialize", asked))
        self.notify("notifications/initialized")
        return result

    # Hearing

    def sees(self, told: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Waits for a message."""
        found: list[dict[str, Any]] = []

        def has_come() -> bool:
            found[:] = [message for message in self.came if told(message)][:1]
            return bool(found) or self._ended

        with self._changed:
            self._changed.wait_for(has_come, PATIENCE)
        assert found, f"only {self.came[-5:]} came"
        return found[0]

    def until(self, is_so: Callable[[], bool]) -> None:
        """Waits until what came makes something so."""
        with self._changed:
            assert self._changed.wait_for(lambda: is_so() or self._ended, PATIENCE)
            assert is_so()

    def answer(self, request_id: Any) -> dict[str, Any]:
        """Waits for the answer to a request."""
        with self._changed:
            self._changed.wait_for(lambda: request_id in self._answers or self._ended, PATIENCE)
            assert request_id in self._answers, f"only {self.came[-5:]} came"
            return self._answers[request_id]

    def result(self, request_id: Any) -> dict[str, Any]:
        answer = self.answer(request_id)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, request_id: Any) -> dict[str, Any]:
        answer = self.answer(request_id)
        assert "error" in answer, answer
        return answer["error"]

    def asks(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Asks, and waits for the whole answer."""
        return self.answer(self.request(method, params))

    def told(self, method: str) -> list[dict[str, Any]]:
        """The params of what it told so far."""
        with self._changed:
            return [message.get("params", {}) for message in self.came if message.get("method") == method]

    # Ending

    def close(self) -> int:
        """Ends the input, and waits for the server to end; what it exits with."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.wait()

    def signal(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        self._ends_with = -signal.SIGKILL
        self.signal(signal.SIGKILL)

    def wait(self) -> int:
        """Waits for the server to end; what it exits with."""
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
            assert not reader.is_alive(), "something else has the server's stdout or stderr open"
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                message = json.loads(line)  # whatever is no message ends the thread, and fails the test
                with self._changed:
                    self.came.append(message)
                    if "method" not in message:
                        self._answers.setdefault(message.get("id"), message)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            self.errors = stream.read()
