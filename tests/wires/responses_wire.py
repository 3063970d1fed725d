"""The responses wire of OpenAI, as far as somebody else's agent needs it."""

import json
from collections.abc import Iterable
from typing import Any

from tests.wires.openai_wire import Call
from tests.wires.server import Answer, event

_BASE = {"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "model": "scripted", "output": []}
_USAGE = {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}


def answer(text: str = "", *, calls: Iterable[Call] = ()) -> Answer:
    """Words, or calls; the name of one in a namespace has `::` behind that."""
    items = [_called(*call) for call in calls] or [_said(text)]
    told: list[dict[str, Any]] = [{"type": "response.created", "response": _BASE}]
    told += [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(items)]
    done = {**_BASE, "status": "completed", "output": items, "usage": _USAGE}
    told.append({"type": "response.completed", "response": done})
    return Answer(pieces=tuple(event(one, one["type"]) for one in told))


def _said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def _called(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    json.loads(arguments)
    space, _, own = name.rpartition("::")
    call = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": own, "arguments": arguments}
    return call | ({"namespace": space} if space else {})
