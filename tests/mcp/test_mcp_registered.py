"""A tool that a program registers in a session that it serves over MCP."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SERVER = """
import os, sys
from handrail import Handrail, tool
from handrail.mcp.stdio.server import serve
from handrail.mcp.stdio.streams import take_streams
from handrail.settings import Settings

@tool(read_only=True, auto_execute=True)
def grow() -> str:
    "Register another tool."
    rail.register(tool(lambda: "grown", name="grown", description="x", read_only=True, auto_execute=True))
    return "done"

rail = Handrail(sys.argv[1], state_dir=sys.argv[2], settings=Settings(), tools=[grow])
source, sink = take_streams(os.open(os.devnull, os.O_RDWR))
serve(lambda _: rail, lambda: None, source, sink, lambda text: print(text, file=sys.stderr), 1)
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def test_clients_hear_of_a_registered_tool(workspace: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVER, str(workspace), str(tmp_path / "state")]
    came: list[dict[str, Any]] = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"HOME": str(tmp_path)}
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        numbers = iter(range(1, 100))

        def send(method: str, params: dict[str, Any], **more: Any) -> None:
            assert server.stdin is not None
            server.stdin.write(f"{json.dumps({'jsonrpc': '2.0', 'method': method, 'params': params, **more})}\n")
            server.stdin.flush()

        def ask(method: str, params: dict[str, Any]) -> Any:
            assert server.stdout is not None
            number = next(numbers)
            send(method, params, id=number)
            for line in server.stdout:
                came.append(json.loads(line))
                if came[-1].get("id") == number:
                    return came[-1]["result"]
            raise AssertionError(came)

        ask("initialize", HELLO)
        send("notifications/initialized", {})
        assert "grown" not in {one["name"] for one in ask("tools/list", {})["tools"]}
        ask("tools/call", {"name": "grow", "arguments": {}})
        assert "grown" in {one["name"] for one in ask("tools/list", {})["tools"]}
        assert "notifications/tools/list_changed" in {one.get("method") for one in came}
        called = ask("tools/call", {"name": "grown", "arguments": {}})
        assert called["content"][0]["text"] == "grown"
        server.stdin.close()
