"""A conversation with a scripted model, in the workspace of the story: what an agent's turns add to the stream."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from handrail import Agent, AsyncHandrail, TurnLimits
from handrail.models.base import ModelError, ModelRequest, ReasoningPiece, StreamPiece, TextPiece, TokenUsage
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.messages import (
    AssistantMessage,
    Message,
    ResultsMessage,
    SummaryMessage,
    SystemMessage,
    UserMessage,
)
from handrail.protocol.permissions import Question, Reply
from handrail.settings import Settings
from handrail.settings.model import NetworkSettings, Tools

_SPENT = TokenUsage(input_tokens=2_400, output_tokens=60, cached_tokens=1_900, cost=0.0041)
_ASKED = {
    "question": "Which callers should round?",
    "options": ["checkout", "report"],
    "multiple": True,
    "custom": True,
}
_NEWS = {
    "content": "Two callers round **before** they add up.",
    "level": "warning",
    "title": "Rounding",
    "thought": "A better total alone would hide it.",
    "evidence": ["src/net.py:5"],
}
_TITLE = {"path": "README.md", "oldText": "# The shop", "newText": "# The shop, rounded half up"}
_OVERLOADED = ModelError("UNAVAILABLE", "The provider is overloaded. Try again in a minute.", retryable=True)
SCRIPT = (
    ScriptedReply(
        reasoning="Rounding happens in one place.",
        text="I look at it first.",
        calls=(("read", {"path": "src/net.py"}), ("display", _NEWS)),
        spent=_SPENT,
    ),
    ScriptedReply(calls=(("question", _ASKED),), spent=_SPENT),
    ScriptedReply(
        calls=(("edit", _TITLE), ("exec", {"command": "curl -s -o /dev/null http://example.org/"})), spent=_SPENT
    ),
    ScriptedReply(text="The totals of checkout round half up now.", spent=_SPENT),
    ScriptedReply(fails=_OVERLOADED),
)
_LONG = (
    *(
        ScriptedReply(text="I read on.", calls=(("read", {"path": "prices.txt", "offset": at}),))
        for at in (1, 101, 201, 301)
    ),
    ScriptedReply(text="It has 600 prices."),
)
_NOTES = ScriptedReply(text="prices.txt has a price a line; nothing was changed yet.")
_SMALL = 7_000
"""Tokens: a window that a long file fills soon."""
_ONLY_READ = Tools(disable=("write", "edit", "exec", "process", "find", "grep", "ls"))


class Talk(NamedTuple):
    """What was seen of both."""

    events: list[Any]
    messages: dict[str, Message | Question | Reply]
    """One of each, by the name its schema has."""


def play_talk(shop: Path, state: Path) -> Talk:
    """Plays it. Ids, times and durations differ from run to run."""
    (shop / "prices.txt").write_text("".join(f"{number}.10 EUR\n" for number in range(600)))
    return asyncio.run(_played(shop, state))


async def _played(shop: Path, state: Path) -> Talk:
    tools, network = Tools(enable=("display", "question")), NetworkSettings(allow=("192.0.2.1:443",))
    settings = Settings(tools=tools, network=network)
    async with AsyncHandrail(shop, mode="full", state_dir=state, settings=settings) as rail:
        agent = Agent(rail, Whole(SCRIPT), limits=TurnLimits(attempts=1))
        (question,) = (await agent.run("Make the totals round half up.")).questions
        reply = Reply(chosen=("checkout",), text="the report is rounded elsewhere")
        await rail.reply(question, reply)
        await agent.go_on()
        await agent.run("And the taxes?")
        events, said = list(rail.events()), _said(rail)
    async with AsyncHandrail(shop, mode="ask", state_dir=state, settings=Settings(tools=_ONLY_READ)) as rail:
        await Agent(rail, Whole(_LONG, window=_SMALL, summary=_NOTES)).run("How many prices are there?")
        return Talk(events, {"question": question, "reply": reply, **_of_each_kind(said, _said(rail))})


def _said(rail: AsyncHandrail) -> list[Message]:
    return [one.message for one in rail.conversation.messages()]


def _of_each_kind(said: list[Message], long: list[Message]) -> dict[str, Message]:
    return {
        "message.system": _all(long, SystemMessage)[0],
        "message.user": _all(said, UserMessage)[0],
        "message.assistant": _all(said, AssistantMessage)[0],
        "message.results": _all(said, ResultsMessage)[-1],
        "message.summary": _all(long, SummaryMessage)[-1],
    }


def _all(messages: list[Message], kind: type[Message]) -> list[Message]:
    return [message for message in messages if isinstance(message, kind)]


class Whole(ScriptedModel):
    """Says its words for the person, and those for itself, each in one piece: how words are put together on their way
    is a matter of time, and a recorded conversation must not be."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        """The line, joined."""
        held: list[TextPiece] | list[ReasoningPiece] = []
        async for piece in super().stream(request):
            if held and type(piece) is not type(held[0]):
                yield type(held[0])("".join(one.text for one in held))
                held = []
            if isinstance(piece, TextPiece | ReasoningPiece):
                held = [*held, piece]  # pyright: ignore[reportAssignmentType]  of one kind, as was just seen to
            else:
                yield piece
