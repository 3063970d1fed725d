"""A server that a person writes in a minute, with one tool and nothing but the standard library: no policy, no journal,
no audit. It says what the protocol asks for, answers errors as errors, and reads only below its folder."""

import json
import os
import sys

TYPE_CHECKING = False  # to load typing would be counted
if TYPE_CHECKING:
    from typing import Any

ROOT = os.path.realpath(sys.argv[1])
READ = {
    "name": "read",
    "description": "Reads a text file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "annotations": {"readOnlyHint": True},
}


def read(path: str) -> str:
    place = os.path.realpath(os.path.join(ROOT, path))
    if os.path.commonpath((ROOT, place)) != ROOT:
        raise ValueError(f"{path} is not below {ROOT}")
    with open(place, encoding="utf-8") as file:
        return file.read()


def called(params: "dict[str, Any]") -> "dict[str, Any]":
    if params["name"] != "read":
        raise ValueError(f"no such tool: {params['name']}")
    try:
        return {"content": [{"type": "text", "text": read(params["arguments"]["path"])}], "isError": False}
    except (OSError, ValueError) as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}


def answered(method: str, params: "dict[str, Any]") -> "dict[str, Any]":
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "plain", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [READ]}
    if method == "tools/call":
        return called(params)
    raise ValueError(f"no such method: {method}")


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        answer["result"] = answered(message["method"], message.get("params", {}))
    except (KeyError, ValueError) as error:
        answer["error"] = {"code": -32602, "message": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
