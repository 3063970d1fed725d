"""What an event says, on one line of a table."""

import json
from typing import Any


def gist(event: dict[str, Any]) -> str:  # noqa: PLR0911  one a shape
    """In a few words."""
    match event:
        case {"args": args, "tool_call_name": name}:
            return f"{name} `{_short(json.dumps(args, ensure_ascii=False))}`"
        case {"result": {"summary": summary}}:
            return str(summary)
        case {"answer": answer}:
            return f"{answer['kind']} {answer.get('reason', '')}".strip()
        case {"permission_request": request}:
            return f"{request['description']}: {request['reason']}"
        case {"host": host, "port": port, "reason": reason}:
            return f"{host}:{port}: {reason}"
        case {"model": model, "input_tokens": asked, "output_tokens": said}:
            return f"{model}: {asked} + {said} tokens"
        case {"reason": reason, "calls": calls}:
            return f"{reason}, {calls} calls"
        case {"code": code, "message": message}:
            return f"{code}: {message}"
        case {"change": {"changes": changes}}:
            return ", ".join(f"{change['path']} {change['action']}" for change in changes)
        case _:
            return str(event.get("text") or event.get("question") or event.get("title") or event.get("mode") or "")


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"
