"""The chat-completions wire of OpenAI, as a server sees it."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tests.wires.server import Answer, Ending, Received, WireServer, event, in_parts

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
KEY = "sk-openai-secret"

Call = tuple[str, str, str]
"""Id, name and the text of the arguments."""


class OpenAIWire(WireServer):
    """Answers as OpenAI does."""

    model = "openai:gpt-4o"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """What finds it."""
        return {"OPENAI_BASE_URL": self.base_url, "OPENAI_API_KEY": KEY}

    def says(self, text: str = "", **given: Any) -> None:
        """The next answer."""
        self.sends(answer(text, **given))

    def refuses(self, status: int, message: str = "no", headers: dict[str, str] | None = None) -> None:
        """The next answer is a refusal."""
        self.sends(self.refusal(status, message, headers))

    def refusal(self, status: int, message: str, headers: dict[str, str] | None = None) -> Answer:
        body = {"error": {"message": message, "type": "some_error", "param": None, "code": None}}
        kind = {"content-type": "application/json", **(headers or {})}
        return Answer(status=status, headers=kind, pieces=(json.dumps(body).encode(),))

    def check(self, question: Received) -> Iterator[str]:
        if question.path != "/v1/chat/completions":
            yield f"there is no {question.path}"
        if not question.headers.get("authorization", "").startswith("Bearer "):
            yield "there is no key"
        if question.body.get("stream") is not True:
            yield "stream is not true"
        yield from _check_tools(question.body.get("tools", []))
        yield from check_messages(question.body.get("messages", []))


def answer(text: str = "", *, ending: Ending = "end", upto: int | None = None, **given: Any) -> Answer:
    """An answer; with `upto` only its first events."""
    return Answer(pieces=tuple(events(text, **given))[:upto], ending=ending)


def events(
    text: str = "",
    *,
    reasoning: str = "",
    reasoning_field: str = "reasoning_content",
    calls: Iterable[Call] = (),
    parts: int = 3,
    finish: str | None = None,
    usage: dict[str, Any] | None = None,
) -> Iterator[bytes]:
    """The events of an answer; the arguments of calls come in parts, by turns."""
    calls = list(calls)
    yield _chunk({"role": "assistant", "content": ""})
    for piece in in_parts(reasoning, parts):
        yield _chunk({reasoning_field: piece})
    for piece in in_parts(text, parts):
        yield _chunk({"content": piece})
    for number, (call_id, name, _) in enumerate(calls):
        call = {"index": number, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        yield _chunk({"tool_calls": [call]})
    pending = [in_parts(arguments, parts) for _, _, arguments in calls]
    while any(pending):
        for number, left in enumerate(pending):
            if left:
                yield _chunk({"tool_calls": [{"index": number, "function": {"arguments": left.pop(0)}}]})
    yield _chunk({}, finish or ("tool_calls" if calls else "stop"))
    counted = usage or {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    yield event({**_BASE, "choices": [], "usage": counted})
    yield event("[DONE]")


_BASE = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "gpt-4o"}


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return event({**_BASE, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _check_tools(tools: list[dict[str, Any]]) -> Iterator[str]:
    for tool in tools:
        function = tool.get("function", {})
        if tool.get("type") != "function" or not _NAME.fullmatch(function.get("name", "")):
            yield f"{tool} is no function"
        elif function.get("parameters", {}).get("type") != "object":
            yield f"the parameters of {function['name']} are no object"


def check_messages(messages: list[dict[str, Any]]) -> Iterator[str]:
    """What is wrong with a talk."""
    waiting: list[str] = []
    seen: set[str] = set()
    before = ""
    for number, message in enumerate(messages):
        role = message.get("role", "")
        if role == "tool":
            yield from _check_result(number, message, waiting)
        elif waiting:
            yield f"message {number} comes before the results of {waiting}"
        if role == "assistant":
            yield from _check_assistant(number, message, before, seen)
            waiting = [call["id"] for call in message.get("tool_calls") or []]
        elif role == "user":
            yield from _check_user(number, message)
        elif role != "tool" and (role not in {"system", "developer"} or number > 0):
            yield f"message {number} has the role {role!r}"
        before = role
    if waiting or before not in {"user", "tool"}:
        yield f"nobody asks anything, or there are no results of {waiting}"


def _check_result(number: int, message: dict[str, Any], waiting: list[str]) -> Iterator[str]:
    if message.get("tool_call_id") not in waiting:
        yield f"message {number} answers no call: {message.get('tool_call_id')!r}"
    else:
        waiting.remove(message["tool_call_id"])
    if not isinstance(message.get("content"), str) or not message["content"]:
        yield f"message {number} has no content"


def _check_user(number: int, message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, list):
        for part in content:
            if part.get("type") not in {"text", "image_url"}:
                yield f"message {number} has a part of type {part.get('type')!r}"
    elif not isinstance(content, str) or not content.strip():
        yield f"message {number} is empty"


def _check_assistant(number: int, message: dict[str, Any], before: str, seen: set[str]) -> Iterator[str]:
    if before in {"assistant", ""}:
        yield f"message {number}: the assistant speaks out of turn"
    calls = message.get("tool_calls") or []
    if not message.get("content") and not calls:
        yield f"message {number} says nothing"
    for call in calls:
        if not call.get("id") or len(call["id"]) > 40 or call["id"] in seen:
            yield f"message {number}: {call.get('id')!r} is no new id"
        seen.add(call.get("id", ""))
        if call.get("type") != "function" or not _NAME.fullmatch(call["function"]["name"]):
            yield f"message {number}: {call} is no call"
        try:
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                yield f"message {number}: the arguments are no object"
        except ValueError:
            yield f"message {number}: the arguments are no JSON"
