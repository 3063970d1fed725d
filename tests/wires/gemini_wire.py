"""The wire of Google's Gemini, as a server sees it."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.wires.openai_wire import Call
from tests.wires.server import Answer, Ending, Received, WireServer, event, in_parts

KEY = "AIza-secret"


class GeminiWire(WireServer):
    """Answers as Gemini does."""

    model = "google:gemini-2.5-flash"

    @property
    def environment(self) -> dict[str, str]:
        """What finds it."""
        return {"GOOGLE_GEMINI_BASE_URL": self.origin, "GEMINI_API_KEY": KEY}

    def says(self, text: str = "", **given: Any) -> None:
        """The next answer."""
        self.sends(answer(text, **given))

    def refuses(self, status: int, message: str = "no", headers: dict[str, str] | None = None) -> None:
        """The next answer is a refusal."""
        self.sends(self.refusal(status, message, headers))

    def refusal(self, status: int, message: str, headers: dict[str, str] | None = None) -> Answer:
        body = {"error": {"code": status, "message": message, "status": "SOME_STATUS"}}
        kind = {"content-type": "application/json", **(headers or {})}
        return Answer(status=status, headers=kind, pieces=(json.dumps(body).encode(),))

    def check(self, question: Received) -> Iterator[str]:
        if not question.path.endswith(":streamGenerateContent?alt=sse"):
            yield f"there is no {question.path}"
        if question.headers.get("x-goog-api-key") != KEY:
            yield "there is no key"
        yield from _check_contents(question.body.get("contents", []))


def answer(text: str = "", *, ending: Ending = "end", upto: int | None = None, **given: Any) -> Answer:
    """An answer; with `upto` only its first events."""
    return Answer(pieces=tuple(events(text, **given))[:upto], ending=ending)


def events(
    text: str = "",
    *,
    reasoning: str = "",
    calls: Iterable[Call] = (),
    signature: str = "c2lnbmF0dXJl",
    parts: int = 3,
    finish: str = "STOP",
) -> Iterator[bytes]:
    """The events of an answer. Calls are never cut up on this wire."""
    for piece in in_parts(reasoning, parts):
        yield _event({"text": piece, "thought": True})
    for piece in in_parts(text, parts):
        yield _event({"text": piece})
    for call_id, name, arguments in calls:
        call = {"id": call_id, "name": name, "args": json.loads(arguments)}
        yield _event({"functionCall": call, "thoughtSignature": signature})
    yield _event({"text": ""}, finish)


def _event(part: dict[str, Any], finish: str | None = None) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    used = {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25}
    return event({"candidates": [candidate], "usageMetadata": used, "modelVersion": "gemini-2.5-flash"})


def _check_contents(contents: list[dict[str, Any]]) -> Iterator[str]:
    waiting: list[str] = []
    before = "model"
    for number, content in enumerate(contents):
        role, parts = content.get("role"), content.get("parts", [])
        if role not in {"user", "model"} or role == before == "model":
            yield f"content {number} is out of turn: {role!r}"
        if not parts or any(part.get("text") == "" for part in parts):
            yield f"content {number} is empty"
        told = [part["functionResponse"]["id"] for part in parts if "functionResponse" in part]
        if told != waiting:
            yield f"content {number}: results of {told}, but {waiting} were called"
        waiting = [part["functionCall"]["id"] for part in parts if "functionCall" in part]
        before = role
    if before != "user":
        yield "nobody asks anything"
