"""tool_call.question-required: the model asks the person something."""

from handrail.protocol.event.header import ToolEvent


class ToolCallQuestionRequired(ToolEvent, frozen=True, kw_only=True, tag="tool_call.question-required"):
    """The turn ends; the answer resumes it."""

    question: str
    options: tuple[str, ...] = ()
    """Answers to choose from."""
    multiple: bool = False
    """Several may be chosen."""
    custom: bool = False
    """An answer in the person's own words is welcome."""
