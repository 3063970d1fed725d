"""A client that adds as little as it can: one pipe each way, one request at a time, answers left as they came."""

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Answered(NamedTuple):
    """A line, and how long it took from the request on."""

    line: bytes
    seconds: float


class Client:
    """A server that has just been started, and has listed its tools."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.begun = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("both are pipes")
        self._source, self._sink = self._process.stdout.fileno(), self._process.stdin.fileno()
        self._number = 0
        self.answered = 0.0
        """When the last answer was read."""
        try:
            self.tools = self._greeted()
        except BaseException:
            self.close()
            raise
        self.listed = time.perf_counter()

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answered:
        """Calls a tool."""
        return self._ask(b'"tools/call"', json.dumps({"name": name, "arguments": arguments}).encode())

    def close(self) -> None:
        """Ends the input, which ends a server."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _greeted(self) -> bytes:
        """The list of tools, for which a client has to say hello first."""
        self._ask(b'"initialize"', json.dumps(HELLO).encode())
        os.write(self._sink, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return self._ask(b'"tools/list"', b"{}").line

    def _ask(self, method: bytes, params: bytes) -> Answered:
        self._number += 1
        request = b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}\n' % (self._number, method, params)
        start = time.perf_counter()
        os.write(self._sink, request)
        line = self._line()
        taken = time.perf_counter() - start
        self.answered = start + taken
        answer = json.loads(line)
        if answer.get("id") != self._number or "result" not in answer:
            raise AssertionError(f"{request!r} was answered with {line!r}")
        return Answered(line, taken)

    def _line(self) -> bytes:
        """The line that answers; a server may also tell something unasked."""
        data = b""
        while True:
            piece = os.read(self._source, 1 << 20)
            if not piece:
                raise AssertionError(f"the server went before it answered: {data!r}")
            data += piece
            if data.endswith(b"\n"):
                for line in data.splitlines():
                    if b'"result"' in line or b'"error"' in line:
                        return line
