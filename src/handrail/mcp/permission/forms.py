"""A form for the person at the client: what is asked, in the words of the terminal, and what of it can be answered.

Nothing is chosen beforehand, and there is no answer that a client could send by itself: a form that is sent back as it
came says nothing.
"""

from typing import Any

from handrail.mcp.caller import Caller
from handrail.mcp.outcomes import FormAnswer, UnansweredCall
from handrail.mcp.permission.question_forms import build_question_form, parse_question_answer
from handrail.mcp.permission.schema import build_choice_field
from handrail.mcp.versions import HANDSHAKE
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest
from handrail.protocol.text import escape_control
from handrail.protocol.wire import escape_surrogates
from handrail.terminal.choices import KEYS, list_choices
from handrail.terminal.request import MAX_DIFF_LINES, render_request, render_title

MAX_FORM_CHARS = 8_000
"""Characters of a message. Clients show forms in a small window, and cut what is too long where they like."""
_DIFFS = (MAX_DIFF_LINES, 20, 10)
_MAX_FIRST_LINES_CHARS = 1_000
_MAX_REASON_CHARS = 2_000
_REASON = {
    "type": "string",
    "title": "Why not",
    "description": "Only with a no. The model reads it.",
    "maxLength": _MAX_REASON_CHARS,
}
_ELSEWHERE = "Not answered here, it waits in `handrail approvals`."
_UNCLEAR = "What you sent was none of the answers. Choose one of them."
_TRIED_AGAIN = "Tried again: this is how it went now."


def build_form(asks: UnansweredCall, protocol: str = HANDSHAKE[-1]) -> dict[str, Any]:
    """The params of `elicitation/create`, as the version has them. There is something that is asked."""
    if asks.questions:
        message, schema = build_question_form(asks.questions[0], protocol)
    else:
        message, schema = _request_form(asks.requests[0], protocol)
    told = f"{_UNCLEAR}\n{message}" if asks.again else message
    form = {"message": told, "requestedSchema": schema}
    return form if protocol == HANDSHAKE[0] else {"mode": "form", **form}


def build_client_form(asks: UnansweredCall, caller: Caller) -> dict[str, Any]:
    """The same as the caller can send it back: one that sends no empty field is not offered any that may be empty."""
    form = build_form(asks, caller.protocol)
    return form | {"requestedSchema": _all_needed(form["requestedSchema"])} if caller.fills_all_fields else form


def parse_form_answer(asks: UnansweredCall, reply: object) -> FormAnswer:
    """What a client's answer to the form says. What is no answer of those that there are is unclear."""
    if not isinstance(reply, dict):
        return FormAnswer(unclear=True)
    told: dict[str, Any] = reply  # pyright: ignore[reportUnknownVariableType]  a JSON object
    action, content = told.get("action"), told.get("content")
    if action == "cancel":
        return FormAnswer()
    if action == "decline":
        return FormAnswer(answer=Answer(kind="deny"))
    if action != "accept" or not isinstance(content, dict):
        return FormAnswer(unclear=True)
    given: dict[str, Any] = content  # pyright: ignore[reportUnknownVariableType]  as above
    if asks.questions:
        return parse_question_answer(asks.questions[0], given)
    return _said_to_request(asks.requests[0], given)


def _all_needed(schema: dict[str, Any]) -> dict[str, Any]:
    """A form without text fields that may be left empty, where there are others."""
    fields, required = schema["properties"], schema.get("required", ())
    kept = {name: field for name, field in fields.items() if name in required or _is_chosen(field)}
    return schema | {"properties": kept or fields}


def _is_chosen(field: dict[str, Any]) -> bool:
    return field["type"] != "string" or "enum" in field or "oneOf" in field


def _request_form(request: PermissionRequest, protocol: str) -> tuple[str, dict[str, Any]]:
    message, whole = _message(request)
    titles = {kind: words for kind, words in _answers(request).items() if whole or kind == "deny"}
    answer = build_choice_field(titles, protocol) | {"title": "Answer"}
    return message, {"type": "object", "properties": {"answer": answer, "reason": _REASON}, "required": ["answer"]}


def _said_to_request(request: PermissionRequest, content: dict[str, Any]) -> FormAnswer:
    kind, reason = content.get("answer"), content.get("reason")
    offered = [one for one in _answers(request) if one == "deny" or _message(request)[1]]
    if kind not in offered or not isinstance(reason, str | None):
        return FormAnswer(unclear=True)
    why = escape_surrogates(reason or "").strip()[:_MAX_REASON_CHARS] if kind == "deny" else ""
    return FormAnswer(answer=Answer(kind=kind, reason=why or None))


def _answers(request: PermissionRequest) -> dict[AnswerKind, str]:
    """What can be answered, each in words."""
    return {KEYS[choice.key]: escape_control(choice.label) for choice in list_choices(request) if choice.key in KEYS}


def _message(request: PermissionRequest) -> tuple[str, bool]:
    """All that a person has to know, and whether it is all. What is too long to be shown cannot be said yes to."""
    head = [render_title(request), *([_TRIED_AGAIN] if request.revision else [])]
    for diff in _DIFFS:
        lines = render_request(request, width=None, diff=diff)
        message = "\n".join((*head, *lines, _ELSEWHERE))
        if len(message) <= MAX_FORM_CHARS:
            return message, True
    first = "\n".join(render_request(request, width=None, diff=0))[:_MAX_FIRST_LINES_CHARS]
    where = f"handrail approvals show {request.id}"
    told = f"It is too long to be shown here whole, so it can only be denied here. To see it and to answer it: {where}"
    return "\n".join((*head, f"{first} …", told)), False
