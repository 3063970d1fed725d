"""The messages wire of Anthropic, as a server sees it."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tests.wires.openai_wire import Call
from tests.wires.server import Answer, Ending, Received, WireServer, event, in_parts

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
KEY = "sk-ant-secret"


class AnthropicWire(WireServer):
    """Answers as Anthropic does."""

    model = "anthropic:claude-sonnet-5-5"

    @property
    def base_url(self) -> str:
        return self.origin

    @property
    def environment(self) -> dict[str, str]:
        """What finds it."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": KEY}

    def says(self, text: str = "", **given: Any) -> None:
        """The next answer."""
        self.sends(answer(text, **given))

    def refuses(self, status: int, message: str = "no", headers: dict[str, str] | None = None) -> None:
        """The next answer is a refusal."""
        self.sends(self.refusal(status, message, headers))

    def refusal(self, status: int, message: str, headers: dict[str, str] | None = None) -> Answer:
        kind = _KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        body = {"type": "error", "error": {"type": kind, "message": message}}
        chosen = {"content-type": "application/json", **(headers or {})}
        return Answer(status=status, headers=chosen, pieces=(json.dumps(body).encode(),))

    def check(self, question: Received) -> Iterator[str]:
        body = question.body
        if question.path.partition("?")[0] != "/v1/messages":
            yield f"there is no {question.path}"
        keyed = question.headers.get("x-api-key") or question.headers.get("authorization", "").startswith("Bearer ")
        if not keyed or not question.headers.get("anthropic-version"):
            yield "there is no key or no version"
        if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
            yield "max_tokens is missing"
        if body.get("stream") is not True:
            yield "stream is not true"
        if len(marks(body)) > 4:
            yield f"more than four cache points: {marks(body)}"
        for tool in body.get("tools", []):
            if not _ID.fullmatch(tool.get("name", "")) or tool.get("input_schema", {}).get("type") != "object":
                yield f"{tool} is no tool"
        yield from check_messages(body.get("messages", []))


_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def marks(value: Any, path: str = "") -> list[str]:
    """Where the cache points of a question are."""
    if isinstance(value, list):
        return [mark for number, one in enumerate(value) for mark in marks(one, f"{path}/{number}")]
    if not isinstance(value, dict):
        return []
    here = [path] if value.get("cache_control") else []
    return here + [mark for name, one in value.items() for mark in marks(one, f"{path}/{name}")]


def answer(text: str = "", *, ending: Ending = "end", upto: int | None = None, **given: Any) -> Answer:
    """An answer; with `upto` only its first events."""
    return Answer(pieces=tuple(events(text, **given))[:upto], ending=ending)


def events(
    text: str = "",
    *,
    reasoning: str = "",
    signature: str = "c2lnbmF0dXJl",
    redacted: str = "",
    calls: Iterable[Call] = (),
    parts: int = 3,
    finish: str | None = None,
    usage: dict[str, Any] | None = None,
) -> Iterator[bytes]:
    """The events of an answer."""
    calls = list(calls)
    counted = usage or {"input_tokens": 20, "output_tokens": 1}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counted,
    }
    yield _event("message_start", message=message)
    yield _event("ping")
    for number, (block, deltas) in enumerate(_blocks(text, reasoning, signature, redacted, calls, parts)):
        yield _event("content_block_start", index=number, content_block=block)
        for delta in deltas:
            yield _event("content_block_delta", index=number, delta=delta)
        yield _event("content_block_stop", index=number)
    stop = {"stop_reason": finish or ("tool_use" if calls else "end_turn"), "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": 5})
    yield _event("message_stop")


Block = tuple[dict[str, Any], list[dict[str, Any]]]


def _blocks(text: str, reasoning: str, signature: str, redacted: str, calls: list[Call], parts: int) -> Iterator[Block]:
    if reasoning:
        said = [{"type": "thinking_delta", "thinking": piece} for piece in in_parts(reasoning, parts)]
        signed = [{"type": "signature_delta", "signature": signature}]
        yield {"type": "thinking", "thinking": "", "signature": ""}, said + signed
    if redacted:
        yield {"type": "redacted_thinking", "data": redacted}, []
    if text:
        said = [{"type": "text_delta", "text": piece} for piece in in_parts(text, parts)]
        yield {"type": "text", "text": ""}, said
    for call_id, name, arguments in calls:
        said = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *in_parts(arguments, parts)]]
        yield {"type": "tool_use", "id": call_id, "name": name, "input": {}}, said


def _event(kind: str, **data: Any) -> bytes:
    return event({"type": kind, **data}, kind)


def failure(kind: str, message: str = "no") -> bytes:
    """An error in the middle of a stream."""
    return _event("error", error={"type": kind, "message": message})


def check_messages(messages: list[dict[str, Any]]) -> Iterator[str]:
    """What is wrong with a talk."""
    waiting: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        if message.get("role") != ("user", "assistant")[number % 2]:
            yield f"message {number} is out of turn: {message.get('role')!r}"
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield f"message {number} is empty"
            continue
        answered = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        if sorted(answered) != sorted(waiting):
            yield f"message {number}: results of {answered}, but {waiting} were called"
        if any(block.get("type") == "tool_result" for block in blocks[len(answered) :]):
            yield f"message {number}: results do not come first"
        waiting = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        for block in blocks:
            yield from _check_block(number, block, message.get("role", ""), seen)
    if not messages or messages[-1].get("role") != "user":
        yield "nobody asks anything"


def _check_block(number: int, block: dict[str, Any], role: str, seen: set[str]) -> Iterator[str]:
    kind = block.get("type")
    if kind not in _BLOCKS[role]:
        yield f"message {number}: {role} has a block of type {kind!r}"
    elif kind == "text" and not block["text"].strip():
        yield f"message {number}: text without text"
    elif kind == "tool_use":
        if not _ID.fullmatch(block["id"]) or block["id"] in seen or not isinstance(block.get("input"), dict):
            yield f"message {number}: {block} is no call"
        if not _ID.fullmatch(block["name"]):
            yield f"message {number}: {block['name']!r} is no name"
        seen.add(block["id"])
    elif kind == "thinking" and not block.get("signature"):
        yield f"message {number}: thoughts without a signature"
    elif kind == "tool_result":
        content = block.get("content")
        for part in content if isinstance(content, list) else []:
            if part.get("type") not in {"text", "image"} or (part["type"] == "text" and not part["text"]):
                yield f"message {number}: {part} is no content of a result"


_BLOCKS = {
    "user": {"text", "image", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
    "": set(),
}
