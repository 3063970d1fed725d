"""The tool display: shows the person something in every view."""

from typing import Annotated

from msgspec import Meta

from handrail.protocol.events import Display, Level, format_display
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.tool import Context, Output, Tool

Title = Annotated[str, Meta(min_length=1, max_length=200)]
Thought = Annotated[str, Meta(max_length=2_000)]
Evidence = Annotated[str, Meta(min_length=1, max_length=500)]


class DisplayArguments(Arguments, frozen=True):
    """The arguments of display."""

    content: Annotated[
        str, Meta(min_length=1, max_length=10_000, description="The text, as Markdown; the first line is a summary.")
    ]
    level: Annotated[Level, Meta(description="The kind of message.")] = "info"
    title: Annotated[Title | None, Meta(description="A few words above it.")] = None
    thought: Annotated[Thought | None, Meta(description="Why you show it.")] = None
    evidence: Annotated[
        tuple[Evidence, ...], Meta(max_length=50, description="Evidence: src/a.py:41, commands, links.")
    ] = ()


class DisplayData(Wire, frozen=True, omit_defaults=False):
    """What was shown."""

    level: Level
    characters: int


DISPLAY = ToolSpec(
    name="display",
    title="Display",
    description=(
        "Show the user something while you work, as Markdown. Use it for news before the end: a finding "
        "that changes the plan, a warning, the state of a long task (level progress). Do not use it for your final "
        "answer, for questions (use question), or for each call: the user sees your calls. It gets no reply."
    ),
    arguments=DisplayArguments,
    data=DisplayData,
    side_effects=("conversation",),
    enabled=False,
    layer="companion",
    intent="show the user something while you work",
    not_for=(("asking", "question"),),
    plain_arguments=("level",),
)


def _log(arguments: DisplayArguments) -> None:
    """One record for a program without a live view."""
    import logging  # noqa: PLC0415  few sessions show something

    logger = logging.getLogger("handrail.display")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # without a handler Python prints warnings
    level = {"warning": logging.WARNING, "error": logging.ERROR}.get(arguments.level, logging.INFO)
    logger.log(level, "%s", format_display(arguments.title, arguments.content))


def build_display_tool() -> Tool:
    return Tool(DISPLAY, _show)


def _show(_: Context, arguments: DisplayArguments) -> Output:
    _log(arguments)
    fields = {name: getattr(arguments, name) for name in ("content", "level", "title", "thought", "evidence")}
    return Output(
        summary=f"shown ({arguments.level}, {len(arguments.content)} characters)",
        content="Shown.\n",
        data=DisplayData(level=arguments.level, characters=len(arguments.content)),
        events=((Display, fields),),
    )
