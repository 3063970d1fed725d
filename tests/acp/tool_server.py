"""A small MCP server, written down by hand: it greets, and it draws a dot. Over stdio as a program, else over HTTP."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS = [
    {"name": "greet", "description": "Greets.", "inputSchema": NAMED},
    {"name": "draw", "description": "Draws.", "inputSchema": {"type": "object"}},
]


def answer(message: dict, greeting: str) -> dict:
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "t", "version": "1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call" if message["params"]["name"] == "draw":
            return {"content": [{"type": "image", "data": DOT, "mimeType": "image/png"}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"{greeting}, {message['params']['arguments']['name']}"}]}
        case _:
            return {}


@contextmanager
def over_http(token: str) -> Iterator[str]:
    """The address of the same over HTTP, for who has the token."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["Authorization"] != f"Bearer {token}":
                self._send(401, b"")
            elif "id" not in asked:
                self._send(202, b"")
            else:
                result = answer(asked, "Good day")
                self._send(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode())

        def do_GET(self) -> None:
            self._send(405, b"")

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        serving.join()


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            said = answer(asked, os.environ["GREETING"])
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
