"""handrail acp: models behind a provider's wire, and what is said where there is no key."""

from pathlib import Path

import pytest
from acp import RequestError
from editor import played
from tests.wires.server import WireServer


def test_a_turn_streams_over_a_providers_wire(
    start, script, workspace: Path, environment: dict[str, str], wire: WireServer
) -> None:
    script()
    environment.update(wire.environment)
    change = '{"path": "a.txt", "oldText": "two", "newText": "2"}'
    wire.says("I change it.", reasoning="Where is it?", calls=[("c1", "edit", change)])
    wire.says("It is done.")

    async def scene() -> None:
        async with start("--model", wire.model, "--mode", "auto") as opened:
            editor = opened.editor
            assert (await opened.say(await opened.new(), "make it 2")).stop_reason == "end_turn"
            said = [one.content.text for one in editor.of("agent_message_chunk")]
            assert ("".join(said), len(said) > 2) == ("I change it.It is done.", True)
            assert "".join(one.content.text for one in editor.of("agent_thought_chunk")) == "Where is it?"
            assert editor.cards()["edit a.txt"]["status"] == "completed"

    played(scene)
    assert (workspace / "a.txt").read_text() == "one\n2\nthree\n"


def test_a_key_that_is_refused_is_told_and_the_session_goes_on(
    start, environment: dict[str, str], openai_wire: WireServer
) -> None:
    environment.update(openai_wire.environment)
    openai_wire.refuses(401, "this key is not ours")

    async def scene() -> None:
        async with start("--model", openai_wire.model) as opened:
            session = await opened.new()
            with pytest.raises(RequestError, match="Check OPENAI_API_KEY") as caught:
                await opened.say(session, "go")
            assert caught.value.data["code"]
            openai_wire.says("Now it is.")
            assert (await opened.say(session, "and now?")).stop_reason == "end_turn"

    played(scene)


def test_without_a_key_a_session_opens_and_a_prompt_names_the_variable(start) -> None:
    async def scene() -> None:
        async with start("--model", "anthropic:claude-sonnet-4-5") as opened:
            session = await opened.new()
            with pytest.raises(RequestError, match="ANTHROPIC_API_KEY"):
                await opened.say(session, "go")

    played(scene)
