"""Whatever was said and done: after a summary the talk is one that both wires take, and nothing that counts is lost."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from playing import Playing
from wire_rules import chat_completions, messages_api

from handrail import AsyncHandrail
from handrail.agent.compaction import plan_compaction
from handrail.agent.loop import Agent
from handrail.agent.summary import format_ranges, keep_ends
from handrail.agent.transcript import (
    TokenEstimates,
    estimate_messages_tokens,
    estimate_request_tokens,
    select_context_messages,
)
from handrail.agent.turn import TurnLimits
from handrail.models.base import ModelError, ModelRequest
from handrail.protocol.messages import (
    AssistantMessage,
    CallPart,
    CallResult,
    Message,
    ResultsMessage,
    SummaryMessage,
    TextPart,
    UserMessage,
)
from handrail.settings import Settings
from handrail.store.transcript import NumberedMessage

Call = tuple[str, dict[str, Any]]
FILLING: list[list[Call]] = [[("read", {"path": "filling.txt"})]] * 2
FILES = ("a.txt", "b.txt", "deep/c.txt", "long.txt")


@st.composite
def calls(draw: st.DrawFn) -> list[Call]:
    """The calls of one message: some work, some are refused, some are no tool at all."""
    path = st.sampled_from(FILES)
    text = st.integers(0, 9_000).map(lambda size: "words of it " * (size // 12))
    one = st.one_of(
        path.map(lambda name: ("read", {"path": name})),
        st.tuples(path, text).map(lambda given: ("write", {"path": given[0], "content": given[1] or "x"})),
        path.map(lambda name: ("edit", {"path": name, "oldText": "words", "newText": "word", "replaceAll": True})),
        st.just(("read", {"path": "../outside"})),
        st.just(("nothing_of_that_name", {})),
    )
    return draw(st.lists(one, min_size=1, max_size=3))


turns = st.lists(
    st.tuples(st.text(alphabet="abc \n", min_size=1, max_size=400), st.lists(calls(), max_size=4), st.booleans()),
    min_size=2,
    max_size=4,
)


def lost(request: ModelRequest, rail: AsyncHandrail, prompts: Sequence[str]) -> list[str]:
    """What a model that is sent this can no longer know."""
    text = "\n".join(getattr(message, "text", "") for message in request.messages)
    missing = [f"prompt {prompt[:30]!r}" for prompt in prompts if prompt.strip() not in text]
    results = [one for message in request.messages if isinstance(message, ResultsMessage) for one in message.results]
    seen = {result.tool_call_id for result in results}
    summary = request.messages[0]
    if not isinstance(summary, SummaryMessage):
        return missing
    effect = summary.text.partition("## Changes in effect")[2].partition("\n## ")[0]
    known = _numbers(effect)
    for record in rail.rail.changes(1 << 30):
        if record.in_effect and not record.undoes and record.tool_call_id not in seen:
            missing += [] if record.number in known else [f"number {record.number}"]
            missing += [f"file {one.path}" for one in record.changes if one.path not in effect]
    return missing


def _numbers(effect: str) -> set[int]:
    found: set[int] = set()
    for line in effect.splitlines():
        if line.startswith("- "):
            for part in line[2:].partition(":")[0].split(", "):
                first, _, last = part.partition("–")
                found |= set(range(int(first), int(last or first) + 1))
    return found


@settings(max_examples=settings.default.max_examples // 6)
@given(turns, st.integers(7_000, 12_000), st.booleans())
def test_after_a_summary_the_talk_is_valid_and_nothing_that_counts_is_lost(
    said: list[tuple[str, list[list[Call]], bool]], window: int, has_notes: bool
) -> None:
    notes = "What I noted." if has_notes else ModelError("UNAVAILABLE", "No.")

    async def play(folder: Path) -> None:
        (folder / "work").mkdir()
        (folder / "work" / "long.txt").write_text("a line with words in it\n" * 400)
        (folder / "work" / "filling.txt").write_text("a line with words in it\n" * 300)
        given = {"mode": "auto", "settings": Settings(), "state_dir": folder / "state", "session": "one"}
        async with AsyncHandrail(folder / "work", **given) as rail:
            prompts: list[str] = []

            def look(request: ModelRequest) -> None:
                assert chat_completions(request.messages) == []
                assert messages_api(request.messages) == []
                assert lost(request, rail, prompts) == []

            for number, (prompt, lines, takes_back) in enumerate(said):
                model = Playing(*lines, *FILLING, "done", window=window, notes=notes)
                model.looks.append(look)
                prompts.append(f"{number}: {prompt}")
                turn = await Agent(rail, model, limits=TurnLimits(repeats=1_000)).run(prompts[-1])
                assert turn.reason == "done", turn
                if takes_back:
                    await rail.undo()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))


@st.composite
def talks(draw: st.DrawFn) -> list[NumberedMessage]:
    """A talk that ends where the model is to be asked."""
    messages: list[Message] = []
    size = st.integers(1, 4_000)
    for number in range(draw(st.integers(1, 12))):
        if draw(st.booleans()) or not messages:
            messages.append(UserMessage(message_id=f"u{number}", text="p" * draw(size), by_loop=draw(st.booleans())))
            continue
        ids = [f"c{number}-{one}" for one in range(draw(st.integers(1, 3)))]
        parts = tuple(CallPart(tool_call_id=one, name="read", args={"path": "a"}) for one in ids)
        said = (TextPart(text="t" * draw(size)), *parts)
        messages.append(AssistantMessage(message_id=f"m{number}", model="x:y", parts=said, finish="calls"))
        results = tuple(CallResult(tool_call_id=one, name="read", ok=True, content="r" * draw(size)) for one in ids)
        messages.append(ResultsMessage(results=results))
    return [NumberedMessage(number, message) for number, message in enumerate(messages, 1)]


@given(talks(), st.integers(0, 6_000))
def test_wherever_it_is_cut_both_wires_take_it_and_it_has_the_room_it_was_given(
    talk: list[NumberedMessage], room: int
) -> None:
    assert chat_completions([one.message for one in talk]) == []
    chosen = plan_compaction(talk, room)
    kept_from = chosen.kept[0].number if chosen.kept else talk[-1].number + 1
    summary = NumberedMessage(talk[-1].number + 1, SummaryMessage(text="s", kept_from=kept_from, cut=chosen.cut))
    shown = select_context_messages([*talk, summary])
    assert isinstance(shown[0], SummaryMessage)
    assert chat_completions(shown) == messages_api(shown) == []
    assert [*chosen.dropped, *chosen.kept] == talk
    assert estimate_request_tokens([*talk, summary], lambda: 0) <= room + 10


@given(talks())
def test_a_talk_that_grows_is_measured_as_if_it_were_measured_anew(talk: list[NumberedMessage]) -> None:
    guesses = TokenEstimates()
    for number in range(len(talk) + 1):
        assert estimate_request_tokens(talk[:number], lambda: 7, guesses) == 7 + estimate_messages_tokens(
            select_context_messages(talk[:number])
        )


@given(st.text(max_size=300), st.integers(3, 200))
def test_a_bounded_text_has_its_beginning_and_its_end(text: str, most: int) -> None:
    short = keep_ends(text, most)
    whole = text.strip()
    assert short == whole if len(whole) <= most else short.startswith(whole[: most * 2 // 3])
    assert len(short) <= most + 40


@given(st.lists(st.integers(1, 60)))
def test_ranges_name_every_number_and_no_other(numbers: list[int]) -> None:
    assert _numbers(f"- {format_ranges(numbers)}: x" if numbers else "") == set(numbers)
