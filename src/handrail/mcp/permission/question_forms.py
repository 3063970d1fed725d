"""A question of the model as a form, and the reply in what comes back. Options are sent by their numbers: what a model
wrote is shown, and never a name or a value that the client has to send back."""

from typing import Any

from handrail.mcp.outcomes import FormAnswer
from handrail.mcp.permission.schema import build_choice_field, build_choices_field
from handrail.mcp.versions import HANDSHAKE
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Question, Reply
from handrail.protocol.text import escape_control, to_one_line
from handrail.tools.companions.question import normalize_reply

_TEXT = {"type": "string", "title": "In your own words"}
_HEAD = "The model asks:"


def build_question_form(question: Question, protocol: str) -> tuple[str, dict[str, Any]]:
    """The message, and the schema of what may be replied."""
    titles = {str(number): to_one_line(option) for number, option in enumerate(question.options, start=1)}
    fields: dict[str, Any] = {}
    if titles and not question.multiple:
        fields["choice"] = build_choice_field(titles, protocol) | {"title": "Reply"}
    elif titles and protocol == HANDSHAKE[0]:
        fields |= {f"choice{number}": {"type": "boolean", "title": words} for number, words in titles.items()}
    elif titles:
        fields["choices"] = build_choices_field(titles) | {"title": "Replies"}
    if question.custom:
        fields["text"] = _TEXT
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    required = list(fields) if len(fields) == 1 else []
    return f"{_HEAD}\n{escape_control(question.question)}", schema | ({"required": required} if required else {})


def parse_question_answer(question: Question, content: dict[str, Any]) -> FormAnswer:
    """The reply, as far as the question can be answered so."""
    text = content.get("text")
    named = [content.get("choice"), *(_listed(content.get("choices")))]
    named += [str(number) for number in range(1, len(question.options) + 1) if content.get(f"choice{number}") is True]
    if not isinstance(text, str | None):
        return FormAnswer(unclear=True)
    try:
        chosen = tuple(question.options[_number(question, one)] for one in named if one not in {None, ""})
        return FormAnswer(answer=normalize_reply(question, Reply(chosen=chosen, text=text)))
    except (UsageError, TypeError):
        return FormAnswer(unclear=True)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def _number(question: Question, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and 0 < int(value[:4]) <= len(question.options):
        return int(value[:4]) - 1
    raise UsageError("there is no such option")
