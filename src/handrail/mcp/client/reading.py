"""Reads a line as a message, also where a server cut its text in the middle of a character.

What is no message is found out here, and not by the SDK's models: these make errors of each part of a wrong one, for
seconds.
"""

import codecs
import json
from collections.abc import Mapping
from typing import Any, cast

from mcp_types import JSONRPCMessage, jsonrpc_message_adapter
from pydantic_core import from_json

_PARTS = ("jsonrpc", "id", "method", "params", "result", "error")


def parse_message(line: bytes) -> JSONRPCMessage | None:
    """The message; None where it is none."""
    text = line.strip().removeprefix(codecs.BOM_UTF8)
    if not text.startswith(b"{"):  # not even tried: of a long list, who reads it would make very many objects
        return None
    value = _value(text) or _value(_mended(text))
    said = {name: value[name] for name in _PARTS if name in value}
    try:
        return jsonrpc_message_adapter.validate_python(said, by_name=False) if _is_message(said) else None
    except ValueError:
        return None


def _is_message(said: Mapping[str, Any]) -> bool:
    by_id = isinstance(said.get("id"), str | int) and not isinstance(said["id"], bool)
    if said.get("jsonrpc") != "2.0":
        return False
    if "method" in said:
        well_asked = isinstance(said["method"], str) and isinstance(said.get("params"), dict | None)
        return well_asked and (by_id or "id" not in said)
    if "result" in said:
        return by_id and isinstance(said["result"], dict)
    return isinstance(said.get("error"), dict) and (by_id or said.get("id") is None)


def _value(text: bytes) -> dict[str, Any]:
    try:
        value: Any = from_json(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _mended(text: bytes) -> bytes:
    """The same with a mark for each byte that is no UTF-8 and each half of a pair: servers cut texts by bytes, or by
    halves of pairs, and the rest of the answer is none the worse for it."""
    try:
        whole = json.dumps(json.loads(text.decode("utf-8", "replace")), ensure_ascii=False)
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    except (ValueError, RecursionError):
        return b""
