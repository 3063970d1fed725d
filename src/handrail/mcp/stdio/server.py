"""Reads requests line by line and answers them, until the input ends."""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from handrail.mcp.calling import Asks, Calls
from handrail.mcp.listing import tool_entry
from handrail.mcp.results import call_result
from handrail.mcp.versions import negotiated
from handrail.protocol.version import VERSION
from handrail.rail import Handrail


def serve(rail: Handrail, source: int, sink: int) -> None:
    """Serves one client over two descriptors."""
    calls = Calls(rail)
    for line in _lines(source):
        message = msgspec.json.decode(line)
        if "id" in message and "method" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": _answer(calls, message)}
            os.write(sink, msgspec.json.encode(answer) + b"\n")


def _lines(source: int) -> Iterator[bytes]:
    rest = b""
    while data := os.read(source, 1 << 16):
        *whole, rest = (rest + data).split(b"\n")
        yield from whole


def _answer(calls: Calls, message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": negotiated(params.get("protocolVersion")),
                "capabilities": {"tools": {"listChanged": True}, "logging": {}},
                "serverInfo": {"name": "handrail", "version": VERSION},
            }
        case "tools/list":
            return {"tools": [tool_entry(spec) for spec in calls.rail.specs()]}
        case "tools/call":
            outcome = calls.begin(params["name"], params.get("arguments", {}))
            return call_result(outcome.interim if isinstance(outcome, Asks) else outcome)
        case _:
            return {}
