"""Reads a line as a message, also where a server cut its text in the middle of a character."""

import codecs
import json

from mcp_types import JSONRPCMessage, jsonrpc_message_adapter


def message_of(line: bytes) -> JSONRPCMessage | None:
    """The message; None where it is none."""
    text = line.strip().removeprefix(codecs.BOM_UTF8)
    if not text.startswith(b"{"):  # not even tried: of a long list, who reads it would make very many objects
        return None
    return _read(text) or _read(_mended(text))


def _read(text: bytes) -> JSONRPCMessage | None:
    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return None


def _mended(text: bytes) -> bytes:
    """The same with a mark for each byte that is no UTF-8 and each half of a pair: servers cut texts by bytes, or by
    halves of pairs, and the rest of the answer is none the worse for it."""
    try:
        whole = json.loads(text.decode("utf-8", "replace"))
        return (
            json.dumps(whole, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        )
    except (ValueError, RecursionError):
        return b""
