"""A small MCP server over stdio, written down by hand: it has one tool, which greets."""

import json
import os
import sys

TOOL = {
    "name": "greet",
    "description": "Greets.",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


def answer(message: dict) -> dict:
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "t", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            said = f"{os.environ['GREETING']}, {message['params']['arguments']['name']}"
            return {"content": [{"type": "text", "text": said}]}
        case _:
            return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}), flush=True)
