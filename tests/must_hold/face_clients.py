"""An editor and a client over HTTP, which say yes to whatever they are asked and remember what they were told, up to
the moment at which nobody answers any more."""

import itertools
import json
import re
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import httpx2
from face_script import CALLS, PROMPT

TOKEN = "a-token-of-the-tests-0123456789"
_NAME = "probe"


class GoneError(Exception):
    """The server was killed."""


class Face(Protocol):
    """What a client does with a server."""

    session: str | None
    """The session that it works in, once it knows it."""
    told: dict[str, bool]
    """The calls that it was told are over, and whether they succeeded."""

    def work(self, wire: socket.socket) -> None:
        """Does all that is not done yet; GoneError where the server is killed meanwhile."""


class Editor:
    """Has a model do it in a session, and goes on with that session afterwards."""

    def __init__(self, folder: Path) -> None:
        self._workspace = str(folder / "workspace")
        self.session: str | None = None
        self.told: dict[str, bool] = {}
        self._words = ""
        self._numbers = itertools.count(1)

    def work(self, wire: socket.socket) -> None:
        with wire.makefile("rwb") as lines:
            self._lines = lines
            self._ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            self._words, where = "", {"cwd": self._workspace, "mcpServers": []}
            if self.session is None:
                self.session = self._ask("session/new", where)["sessionId"]
            else:
                self._ask("session/load", {"sessionId": self.session, **where})
            text = "/continue" if PROMPT in self._words else PROMPT
            prompt = [{"type": "text", "text": text}]
            assert (
                self._ask("session/prompt", {"sessionId": self.session, "prompt": prompt})["stopReason"] == "end_turn"
            )

    @property
    def words(self) -> str:
        """What was said in the session."""
        return self._words

    def _ask(self, method: str, params: Any) -> Any:
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("method") == "session/update":
                self._hear(message["params"]["update"])
            elif message.get("method") == "session/request_permission":
                chosen = {"outcome": "selected", "optionId": "once"}
                self._send({"id": message["id"], "result": {"outcome": chosen}})
            elif message.get("id") == number:
                assert "result" in message, message
                return message["result"]

    def _hear(self, update: Any) -> None:
        if update["sessionUpdate"].endswith("_message_chunk"):
            self._words += update["content"].get("text", "")
        if update.get("status") in {"completed", "failed"}:
            self.told[update["toolCallId"]] = update["status"] == "completed"

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._lines.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._lines.flush()
        except OSError:
            raise GoneError from None

    def _next(self) -> dict[str, Any]:
        try:
            line = self._lines.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise GoneError
        return json.loads(line)


class Client:
    """Makes one call after the other over HTTP; one that it got no result of it makes again."""

    session = f"mcp-{_NAME}"

    def __init__(self, folder: Path) -> None:
        del folder
        self.told: dict[str, bool] = {}
        self.results: list[dict[str, Any]] = []
        self._numbers = itertools.count(1)

    def work(self, wire: socket.socket) -> None:
        self._url = self._found(wire)
        with ExitStack() as opened:
            headers = {"Authorization": f"Bearer {TOKEN}", "accept": "application/json, text/event-stream"}
            self._web, self._forms = (
                opened.enter_context(httpx2.Client(headers=headers, timeout=120)) for _ in range(2)
            )
            info = {"name": _NAME, "version": "1"}
            greeting = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info}
            self._ask("initialize", greeting)
            self._post(self._web, {"method": "notifications/initialized"})
            for name, arguments in CALLS[len(self.results) :]:
                result = self._ask("tools/call", {"name": name, "arguments": arguments})["structuredContent"]
                self.told[result["tool_call_id"]] = result["ok"]
                self.results.append(result)

    def _found(self, wire: socket.socket) -> str:
        with wire.makefile("r") as lines:
            said = ""
            for line in lines:
                said += line
                if "Authorization" in line:
                    return re.findall(r"http://\S+", said)[0]
        raise GoneError

    def _ask(self, method: str, params: Any) -> Any:
        number = next(self._numbers)
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            with self._web.stream("POST", self._url, json=body) as answer:
                assert answer.status_code == 200, answer.read()
                if method == "initialize":
                    met = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
                    self._web.headers |= met
                    self._forms.headers |= met
                for line in answer.iter_lines():
                    message = json.loads(line.removeprefix("data: ")) if line.startswith(("data: {", "{")) else {}
                    if message.get("method") == "elicitation/create":
                        chosen = {"action": "accept", "content": {"answer": "once"}}
                        self._post(self._forms, {"id": message["id"], "result": chosen})
                    elif message.get("id") == number:
                        assert "result" in message, message
                        return message["result"]
        except httpx2.TransportError:
            raise GoneError from None
        raise GoneError

    def _post(self, web: httpx2.Client, message: dict[str, Any]) -> None:
        try:
            assert web.post(self._url, json={"jsonrpc": "2.0", **message}).status_code == 202
        except httpx2.TransportError:
            raise GoneError from None


FACES: dict[str, type[Editor] | type[Client]] = {"acp": Editor, "http": Client}
