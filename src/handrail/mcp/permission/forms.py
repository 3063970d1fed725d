"""A form for the person at the client: what is asked, in the words of the terminal, and what of it can be answered.

Nothing is chosen beforehand, and there is no answer that a client could send by itself: a form that is sent back as it
came says nothing.
"""

from typing import Any

from handrail.mcp.caller import Caller
from handrail.mcp.outcomes import Asks, Said
from handrail.mcp.permission.question_forms import question_form, said_to_question
from handrail.mcp.permission.schema import choice_of
from handrail.mcp.versions import HANDSHAKE
from handrail.protocol.permission import Answer, AnswerKind, PermissionRequest
from handrail.protocol.plain import readable
from handrail.terminal.choices import KEYS, choices
from handrail.terminal.request import MOST_OF_A_DIFF, request_lines, title
from handrail.terminal.visible import visible

LONGEST = 8_000
"""Characters of a message. Clients show forms in a small window, and cut what is too long where they like."""
_DIFFS = (MOST_OF_A_DIFF, 20, 10)
_FIRST_LINES = 1_000
_LONGEST_REASON = 2_000
_REASON = {
    "type": "string",
    "title": "Why not",
    "description": "Only with a no. The model reads it.",
    "maxLength": _LONGEST_REASON,
}
_ELSEWHERE = "Not answered here, it waits in `handrail approvals`."
_UNCLEAR = "What you sent was none of the answers. Choose one of them."
_TRIED_AGAIN = "Tried again: this is how it went now."


def form_of(asks: Asks, protocol: str = HANDSHAKE[-1]) -> dict[str, Any]:
    """The params of `elicitation/create`, as the version has them. There is something that is asked."""
    if asks.questions:
        message, schema = question_form(asks.questions[0], protocol)
    else:
        message, schema = _request_form(asks.requests[0], protocol)
    told = f"{_UNCLEAR}\n{message}" if asks.again else message
    form = {"message": told, "requestedSchema": schema}
    return form if protocol == HANDSHAKE[0] else {"mode": "form", **form}


def form_for(asks: Asks, caller: Caller) -> dict[str, Any]:
    """The same as the caller can send it back: one that sends no empty field is not offered any that may be empty."""
    form = form_of(asks, caller.protocol)
    return form | {"requestedSchema": _all_needed(form["requestedSchema"])} if caller.fills_all_fields else form


def said_in(asks: Asks, reply: object) -> Said:
    """What a client's answer to the form says. What is no answer of those that there are is unclear."""
    if not isinstance(reply, dict):
        return Said(unclear=True)
    told: dict[str, Any] = reply  # pyright: ignore[reportUnknownVariableType]  a JSON object
    action, content = told.get("action"), told.get("content")
    if action == "cancel":
        return Said()
    if action == "decline":
        return Said(aside=True) if asks.questions else Said(answer=Answer(kind="deny"))
    if action != "accept" or not isinstance(content, dict):
        return Said(unclear=True)
    given: dict[str, Any] = content  # pyright: ignore[reportUnknownVariableType]  as above
    if asks.questions:
        return said_to_question(asks.questions[0], given)
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
    answer = choice_of(titles, protocol) | {"title": "Answer"}
    return message, {"type": "object", "properties": {"answer": answer, "reason": _REASON}, "required": ["answer"]}


def _said_to_request(request: PermissionRequest, content: dict[str, Any]) -> Said:
    kind, reason = content.get("answer"), content.get("reason")
    offered = [one for one in _answers(request) if one == "deny" or _message(request)[1]]
    if kind not in offered or not isinstance(reason, str | None):
        return Said(unclear=True)
    why = readable(reason or "").strip()[:_LONGEST_REASON] if kind == "deny" else ""
    return Said(answer=Answer(kind=kind, reason=why or None))


def _answers(request: PermissionRequest) -> dict[AnswerKind, str]:
    """What can be answered, each in words."""
    return {KEYS[choice.key]: visible(choice.words) for choice in choices(request) if choice.key in KEYS}


def _message(request: PermissionRequest) -> tuple[str, bool]:
    """All that a person has to know, and whether it is all. What is too long to be shown cannot be said yes to."""
    head = [title(request), *([_TRIED_AGAIN] if request.revision else [])]
    for diff in _DIFFS:
        lines = request_lines(request, width=None, diff=diff)
        message = "\n".join((*head, *lines, _ELSEWHERE))
        if len(message) <= LONGEST:
            return message, True
    first = "\n".join(request_lines(request, width=None, diff=0))[:_FIRST_LINES]
    where = f"handrail approvals show {request.id}"
    told = f"It is too long to be shown here whole, so it can only be denied here. To see it and to answer it: {where}"
    return "\n".join((*head, f"{first} …", told)), False
