"""Forms by which a client asks its user.

A form preselects nothing. Sent back as it came, it answers nothing.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.mcp.calls import ClientCalls, Outcome, UnansweredCall
from handrail.mcp.protocol import HANDSHAKE, Caller
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest, Question, Reply
from handrail.protocol.text import escape_control, to_one_line
from handrail.protocol.wire import escape_surrogates
from handrail.terminal.changes_text import render_diff_lines
from handrail.terminal.request_text import (
    MAX_DIFF_LINES,
    describe_answers,
    describe_question,
    render_request,
    render_title,
)

MAX_FORM_CHARS = 8_000
"""The length of a message. Clients show forms in a small window and cut a longer message anywhere."""
_DIFF_LINES = (MAX_DIFF_LINES, 20, 10)
_MAX_EXCERPT_CHARS = 1_000
_MAX_REASON_CHARS = 2_000
_REASON = {
    "type": "string",
    "title": "Why not",
    "description": "Only for a denial. The model reads it.",
    "maxLength": _MAX_REASON_CHARS,
}
_OWN_WORDS = {"type": "string", "title": "In your own words"}
_QUESTION = "The model asks:"
_ELSEWHERE = "Without an answer here, it waits in `handrail approvals`."
_UNCLEAR = "Your answer is not one of the choices. Choose one."
_TRIED_AGAIN = "The preview ran again. This is its new outcome."


class FormAnswer(msgspec.Struct, frozen=True, kw_only=True):
    answer: Answer | Reply | None = None
    """None leaves the call unanswered. `deny` puts a question aside."""
    unclear: bool = False
    """Whether the form had an answer, but not one of its choices."""


def build_form(call: UnansweredCall, caller: Caller) -> dict[str, Any]:
    """The params of `elicitation/create` for the first question or request of a call."""
    if call.questions:
        message, schema = _build_question_form(call.questions[0], caller.protocol)
    else:
        message, schema = _build_request_form(call.requests[0], caller.protocol)
    form: dict[str, Any] = {
        "message": f"{_UNCLEAR}\n{message}" if call.again else message,
        "requestedSchema": _drop_optional_texts(schema) if caller.fills_all_fields else schema,
    }
    return form if caller.protocol == HANDSHAKE[0] else {"mode": "form", **form}


def apply_form(calls: ClientCalls, call: UnansweredCall, form: object) -> Outcome:
    """The outcome of a call after a form came back. An unclear answer is asked for once more. None parks the call."""
    parsed = parse_form(call, form)
    if parsed.unclear and not call.again:
        return replace(call, again=True)
    return calls.park(call) if parsed.answer is None else calls.answer(call, parsed.answer)


def parse_form(call: UnansweredCall, form: object) -> FormAnswer:
    if not isinstance(form, dict):
        return FormAnswer(unclear=True)
    fields: dict[str, Any] = form  # pyright: ignore[reportUnknownVariableType]  a JSON object
    action, content = fields.get("action"), fields.get("content")
    if action == "cancel":
        return FormAnswer()
    if action == "decline":
        return FormAnswer(answer=Answer(kind="deny"))
    if action != "accept" or not isinstance(content, dict):
        return FormAnswer(unclear=True)
    if call.questions:
        return _parse_reply(call.questions[0], content)  # pyright: ignore[reportUnknownArgumentType]  as above
    return _parse_answer(call.requests[0], content)  # pyright: ignore[reportUnknownArgumentType]  as above


# Permission requests


def _build_request_form(request: PermissionRequest, protocol: str) -> tuple[str, dict[str, Any]]:
    message, complete = _build_message(request)
    answer = _build_choice(_list_answers(request, complete), protocol) | {"title": "Answer"}
    return message, {"type": "object", "properties": {"answer": answer, "reason": _REASON}, "required": ["answer"]}


def _parse_answer(request: PermissionRequest, content: dict[str, Any]) -> FormAnswer:
    kind, reason = content.get("answer"), content.get("reason")
    if kind not in list(_list_answers(request, _build_message(request)[1])) or not isinstance(reason, str | None):
        return FormAnswer(unclear=True)
    why = escape_surrogates(reason or "").strip()[:_MAX_REASON_CHARS] if kind == "deny" else ""
    return FormAnswer(answer=Answer(kind=kind, reason=why or None))


def _list_answers(request: PermissionRequest, complete: bool) -> dict[AnswerKind, str]:
    """The answers with their titles. If the message is incomplete, only `deny`."""
    answers = describe_answers(request)
    return {kind: escape_control(words) for kind, words in answers.items() if complete or kind == "deny"}


def _build_message(request: PermissionRequest) -> tuple[str, bool]:
    """The message, and whether it is complete. A request that is too long to be shown cannot be approved here."""
    head = [render_title(request), *([_TRIED_AGAIN] if request.revision else [])]
    end, preview = (describe_question(request), _ELSEWHERE), request.preview
    has_run = preview is not None and preview.kind == "run" and bool(preview.text.strip())
    for lines in (*_DIFF_LINES, 0) if has_run else _DIFF_LINES:
        diff = ("", *render_diff_lines(preview, None, lines), "") if has_run and lines and preview is not None else ()
        message = "\n".join((*head, *render_request(request, width=None, diff=lines), *diff, *end))
        if len(message) <= MAX_FORM_CHARS:
            return message, True
    excerpt = "\n".join(render_request(request, width=None, diff=0))[:_MAX_EXCERPT_CHARS]
    where = f"handrail approvals show {request.id}"
    note = f"It is too long to be shown here, so you can only deny it here. To see and answer it: {where}"
    return "\n".join((*head, f"{excerpt} …", note)), False


# Questions. Options are sent by their numbers, so that no text of a model becomes a field name or value.


def _build_question_form(question: Question, protocol: str) -> tuple[str, dict[str, Any]]:
    titles = {str(number): to_one_line(option) for number, option in enumerate(question.options, start=1)}
    fields: dict[str, Any] = {}
    if titles and not question.multiple:
        fields["choice"] = _build_choice(titles, protocol) | {"title": "Reply"}
    elif titles and protocol == HANDSHAKE[0]:  # it has no field for several values
        fields |= {f"choice{number}": {"type": "boolean", "title": title} for number, title in titles.items()}
    elif titles:
        fields["choices"] = {"type": "array", "items": {"anyOf": _list_constants(titles)}, "title": "Replies"}
    if question.custom:
        fields["text"] = _OWN_WORDS
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    required = {"required": list(fields)} if len(fields) == 1 else {}
    return f"{_QUESTION}\n{escape_control(question.question)}", schema | required


def _parse_reply(question: Question, content: dict[str, Any]) -> FormAnswer:
    text, several = content.get("text"), content.get("choices")
    if not isinstance(text, str | None):
        return FormAnswer(unclear=True)
    numbers: list[Any] = [content.get("choice"), *(several if isinstance(several, list) else ())]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  JSON
    numbers += [str(number) for number in range(1, len(question.options) + 1) if content.get(f"choice{number}") is True]
    try:
        chosen = tuple(_find_option(question, number) for number in numbers if number not in {None, ""})
        return FormAnswer(answer=question.normalize_reply(Reply(chosen=chosen, text=text)))
    except (UsageError, TypeError):
        return FormAnswer(unclear=True)


def _find_option(question: Question, number: Any) -> str:
    if (
        isinstance(number, str)
        and number.isascii()
        and number.isdigit()
        and 0 < int(number[:4]) <= len(question.options)
    ):
        return question.options[int(number[:4]) - 1]
    raise UsageError("there is no such option")


# Fields


def _build_choice(titles: Mapping[Any, str], protocol: str) -> dict[str, Any]:
    if protocol == HANDSHAKE[0]:
        return {"type": "string", "enum": list(titles), "enumNames": list(titles.values())}
    return {"type": "string", "oneOf": _list_constants(titles)}


def _list_constants(titles: Mapping[Any, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in titles.items()]


def _drop_optional_texts(schema: dict[str, Any]) -> dict[str, Any]:
    """The form without optional text fields, unless it has no others."""
    fields, required = schema["properties"], schema.get("required", ())
    kept = {name: field for name, field in fields.items() if name in required or not _is_text(field)}
    return schema | {"properties": kept or fields}


def _is_text(field: dict[str, Any]) -> bool:
    return field["type"] == "string" and "enum" not in field and "oneOf" not in field
