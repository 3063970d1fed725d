"""A question of the model: as a form where the editor has forms. Where it has none the turn ends with the question in
words, and the next prompt is the reply: that takes own words too, which buttons do not, and outlives the editor."""

from typing import Any, cast

from acp.schema import (
    AcceptElicitationResponse,
    ClientCapabilities,
    CreateElicitationResponse,
    ElicitationFormSessionMode,
    ElicitationMultiSelectPropertySchema,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    StringMultiSelectItems,
)

from handrail.protocol.permissions import Question, Reply
from handrail.protocol.text import to_one_line

_CHOSEN, _WORDS = "choice", "text"
_Property = ElicitationStringPropertySchema | ElicitationMultiSelectPropertySchema


def has_forms(client: ClientCapabilities | None) -> bool:
    """Whether the editor can show one."""
    return client is not None and client.elicitation is not None and client.elicitation.form is not None


def build_question_form(question: Question, session_id: str) -> ElicitationFormSessionMode:
    """The form for a question."""
    properties: dict[str, Any] = {}
    if question.options:
        properties[_CHOSEN] = _choice(question)
    if question.custom:
        title = "Or in your own words" if question.options else "Your reply"
        properties[_WORDS] = ElicitationStringPropertySchema(type="string", title=title)
    schema = ElicitationSchema(properties=properties, required=list(properties) if len(properties) == 1 else None)
    return ElicitationFormSessionMode(
        session_id=session_id, tool_call_id=question.tool_call_id, requested_schema=schema
    )


def parse_form_reply(response: CreateElicitationResponse) -> Reply | None:
    """What the person said; None where they put the question aside."""
    if not isinstance(response, AcceptElicitationResponse):
        return None
    given = response.content or {}
    chosen = given.get(_CHOSEN)
    several = cast("list[Any]", chosen) if isinstance(chosen, list) else [chosen] if chosen else []
    text = given.get(_WORDS)
    reply = Reply(chosen=tuple(map(str, several)), text=text if isinstance(text, str) and text.strip() else None)
    return reply if reply.chosen or reply.text else None


def render_question(question: Question) -> str:
    """The question for a person who replies with their next prompt."""
    rows = [f"{number}. {to_one_line(option)}" for number, option in enumerate(question.options, start=1)]
    how = "Reply with a number or in words." if rows else "Reply in your own words."
    return "\n".join(("", "", question.question.rstrip(), "", *rows, "", f"*{how}*", ""))


def _choice(question: Question) -> _Property:
    options = list(question.options)
    if question.multiple:
        items = StringMultiSelectItems(type="string", enum=options)
        return ElicitationMultiSelectPropertySchema(type="array", items=items)
    return ElicitationStringPropertySchema(type="string", enum=options)
