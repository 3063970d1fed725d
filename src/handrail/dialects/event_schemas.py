"""JSON Schemas of the messages of the event adapters."""

from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}
_OBJECT: dict[str, Any] = {"type": "object"}
_STATES = ["start", "running", "update", "end", "error", "permission-required", "question-required"]
_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["toolName", "serverName", "permissionType", "description", "requestId"],
    "properties": {"permissionType": {"enum": ["read", "write", "all", "command"]}, "requestId": _TEXT},
}


def _build_object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": required | (optional or {})}


_DEEPCHAT_CALL = {
    "tool_call": {"enum": _STATES},
    "tool_call_id": _TEXT,
    "tool_call_name": _TEXT,
    "tool_call_params": _TEXT,
    "tool_call_server_name": _TEXT,
    "tool_call_response": _TEXT,
    "tool_call_response_raw": _build_object({"toolResult": _OBJECT}),
    "permission_request": _REQUEST,
    "question_request": _OBJECT,
}
_DEEPCHAT_RESPONSE = _build_object({"eventId": _TEXT}, {"content": _TEXT, "reasoning_content": _TEXT, **_DEEPCHAT_CALL})
_DEEPCHAT_RESPONSE["dependentRequired"] = {"tool_call": ["tool_call_id", "tool_call_name"]}
_DELTA = _build_object(
    {"phase": {"enum": ["start", "progress"]}}, {"warning": _build_object({"code": _TEXT, "message": _TEXT})}
)
_OUTPUT = {
    "anyOf": [
        _build_object({"operation": {"const": "message"}, "content": _TEXT}),
        _build_object(
            {
                "operation": _TEXT,
                "ok": {"type": "boolean"},
                "path": _TEXT_OR_NULL,
                "summary": _TEXT,
                "exitCode": {"type": ["integer", "null"]},
                "durationMs": {"type": "number"},
                "limits": {"type": "array", "items": _TEXT},
            }
        ),
    ]
}
_STEP_STATES = ["pending", "running", "completed", "failed", "awaiting-confirmation"]
_ONETHING_REQUEST = _build_object(
    {
        "id": _TEXT,
        "type": {"type": "string", "examples": ["external_directory", "bash", "edit"]},
        "pattern": {"type": "array", "items": _TEXT},
        "sessionId": _TEXT,
        "messageId": _TEXT_OR_NULL,
        "callId": _TEXT,
        "title": _TEXT,
        "metadata": _OBJECT,
        "createdAt": {"type": "integer"},
    }
)
_STEP_METADATA = _build_object(
    {"status": {"enum": _STEP_STATES}, "tool": _TEXT}, {"permission_request": _ONETHING_REQUEST}
)


def _build_record(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return _build_object({"ts": _TEXT, "taskId": _TEXT, "agentId": _TEXT, "type": {"const": kind}, "payload": payload})


EVENT_SCHEMAS: dict[str, dict[str, Any]] = {
    "deepchat": {
        "anyOf": [
            _build_object({"event": {"const": "STREAM_EVENTS.RESPONSE"}, "data": _DEEPCHAT_RESPONSE}),
            _build_object(
                {"event": {"const": "STREAM_EVENTS.ERROR"}, "data": _build_object({"eventId": _TEXT, "error": _TEXT})}
            ),
            _build_object(
                {
                    "event": {"const": "STREAM_EVENTS.END"},
                    "data": _build_object({"eventId": _TEXT, "userStop": {"type": "boolean"}}),
                }
            ),
        ]
    },
    "devminds": {
        "anyOf": [
            _build_record("agent.run.delta", _DELTA),
            _build_record("agent.run.output", _OUTPUT),
            _build_record("agent.run.cancelled", _OBJECT),
            _build_record("agent.run.error", _build_object({"message": _TEXT})),
            _build_record("agent.run.finished", _OBJECT),
        ]
    },
    "onething": _build_object(
        {
            "type": {"const": "STEP_UPDATED"},
            "payload": _build_object(
                {
                    "sessionId": _TEXT,
                    "messageId": _TEXT_OR_NULL,
                    "stepId": _TEXT,
                    "updates": _build_object({"title": _TEXT, "metadata": _STEP_METADATA}),
                }
            ),
        }
    ),
}
"""The schema of a message by the name of its dialect."""
