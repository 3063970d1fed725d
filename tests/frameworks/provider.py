"""A provider on the loopback that plays a script on whichever wire it is asked: OpenAI's two, or Anthropic's."""

import json
from collections.abc import Iterator
from typing import Any

from tests.wires import anthropic_wire, openai_wire, responses_wire
from tests.wires.server import Answer, Received, WireServer

Call = tuple[str, dict[str, Any]]
"""A tool and its arguments."""


class Provider(WireServer):
    """Plays its lines, then says that it is done."""

    def __init__(self, *lines: list[Call]) -> None:
        super().__init__()
        self._lines = list(lines)
        self.prefix = ""
        """Before the name of each tool."""
        self.always(self._play)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.origin,
            "ANTHROPIC_API_KEY": "sk-ant-x",
            "OPENAI_BASE_URL": f"{self.origin}/v1",
            "OPENAI_API_KEY": "sk-x",
        }

    @property
    def results(self) -> list[str]:
        """The results of tools in the last question that had tools."""
        return list(_list_results(next(one.body for one in reversed(self.received) if one.body.get("tools"))))

    def check(self, question: Received) -> Iterator[str]:
        if question.path.startswith("/v1/messages") and not self.prefix:
            yield from anthropic_wire.check_messages(question.body["messages"])
        elif question.path == "/v1/chat/completions":
            yield from openai_wire.check_messages(question.body["messages"])

    def refusal(self, status: int, message: str, headers: dict[str, str] | None = None) -> Answer:
        return Answer(status=status, headers=headers or {}, pieces=(message.encode(),))

    def _play(self, question: Received) -> Answer:
        if question.path == "/":  # whether anybody is there
            return Answer(without_head=True, ending="drop")
        line = self._lines.pop(0) if self._lines and question.body.get("tools") else []
        made = f"call_{len(self.received)}"
        calls = [(f"{made}_{at}", self.prefix + name, json.dumps(args)) for at, (name, args) in enumerate(line)]
        text = "" if calls else "Done."
        if question.path == "/v1/responses":
            return _answer_json(responses_wire.answer(text, calls=calls), "response")
        if question.path == "/v1/chat/completions":
            return openai_wire.answer(text, calls=calls)
        if question.body.get("stream"):
            return anthropic_wire.answer(text, calls=calls)
        return _answer_json_message(text, calls)


def _answer_json(streamed: Answer, key: str) -> Answer:
    """The last event of a stream as a whole."""
    data = json.loads(streamed.pieces[-1].decode().partition("data: ")[2])[key]
    whole = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], **data}
    return Answer(headers={"content-type": "application/json"}, pieces=(json.dumps(whole).encode(),))


def _answer_json_message(text: str, calls: list[openai_wire.Call]) -> Answer:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_use", "id": one, "name": name, "input": json.loads(args)} for one, name, args in calls]
    whole = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return Answer(headers={"content-type": "application/json"}, pieces=(json.dumps(whole).encode(),))


def _list_results(body: dict[str, Any]) -> Iterator[str]:
    for message in body.get("messages", body.get("input", [])):
        if message.get("role") == "tool":
            yield message["content"]
        elif message.get("type") == "function_call_output":
            yield message["output"]
        elif isinstance(message.get("content"), list):
            for block in message["content"]:
                if block.get("type") == "tool_result":
                    content = block["content"]
                    yield content if isinstance(content, str) else "".join(part["text"] for part in content)
