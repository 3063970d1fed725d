"""The tool question: the model asks the person, whose reply becomes the result of the call."""

from typing import Annotated

from msgspec import Meta

from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import Question, Reply
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.tool import Context, Output, Tool

_NO_REPLY = "The user did not answer. Do not ask again: decide yourself and name your assumption, or stop here."

Option = Annotated[str, Meta(min_length=1, max_length=500)]


class QuestionArguments(Arguments, frozen=True):
    """The arguments of question."""

    question: Annotated[
        str, Meta(min_length=1, max_length=4_000, description="One question, with the facts that the user needs.")
    ]
    options: Annotated[
        tuple[Option, ...],
        Meta(max_length=20, description="Replies to choose from, short and different; [] for a free reply."),
    ]
    multiple: Annotated[bool, Meta(description="Whether several options may be chosen.")] = False
    custom: Annotated[bool, Meta(description="Whether the user may also reply in their own words.")] = False

    def __post_init__(self) -> None:
        if not self.question.strip() or not all(option.strip() for option in self.options):
            raise ValueError("question and options must not be blank")
        if len({option.strip() for option in self.options}) != len(self.options):
            raise ValueError("options must differ from one another")


class QuestionData(Wire, frozen=True, omit_defaults=False):
    """The reply."""

    chosen: tuple[str, ...]
    """The chosen options, in the order of the question."""
    text: str | None
    """The reply in own words."""


QUESTION = ToolSpec(
    name="question",
    title="Question",
    description=(
        "Ask the user one question and wait for the reply. Use it if only the user can decide: a choice of goals, a "
        "fact that you cannot find, a choice that is hard to undo. First check files and commands. Do not "
        "ask for permission (calls that need approval ask by themselves) or whether to continue. It must be the only "
        "call of its message."
    ),
    arguments=QuestionArguments,
    data=QuestionData,
    side_effects=("conversation",),
    enabled=False,
    layer="companion",
    intent="ask the user for a decision, alone in its message",
    not_for=(("telling something", "display"),),
)


def build_question_tool(*, unattended: bool) -> Tool:
    """The tool question. The runtime asks the person. `run` refuses a question that cannot be asked."""

    def run(_: Context, __: QuestionArguments) -> Output:
        if unattended:
            message = "No user is present to answer. Decide yourself, continue, and name your assumption at the end."
            raise ToolError("UNAVAILABLE", message)
        message = "A question must be the only call of its message. It was not asked. Ask again, alone."
        raise ToolError("INVALID_ARGUMENT", message)

    return Tool(QUESTION, run, asks=None if unattended else _build_question)


def _build_question(call_id: str, arguments: QuestionArguments) -> Question:
    return Question(
        tool_call_id=call_id,
        question=arguments.question,
        options=arguments.options,
        multiple=arguments.multiple,
        custom=arguments.custom or not arguments.options,
    )


def build_reply_output(question: Question, reply: Reply) -> Output:
    chosen = "; ".join(reply.chosen)
    lines = [f"The person chose: {chosen}"] if chosen else []
    lines += [f"The person {'added' if chosen else 'replied'}: {reply.text}"] if reply.text else []
    # The summary goes to the audit, so it does not have the reply itself.
    how = [f"{len(reply.chosen)} of {len(question.options)} options"] if chosen else []
    summary = f"replied with {' and '.join(how + (['own words'] if reply.text else []))}"
    data = QuestionData(chosen=reply.chosen, text=reply.text)
    return Output(title=question.question[:200], summary=summary, content="\n".join(lines), data=data)


def build_no_reply_error() -> ToolError:
    return ToolError("CANCELLED", _NO_REPLY)
