"""The toolset for pydantic-ai: deferred approval, also by another process, and its results."""

import asyncio
import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from parked_session import PIXEL, open_rail
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from handrail import AsyncHandrail, Handrail
from handrail.frameworks.pydantic_ai import HandrailToolset

APPEND = ToolCallPart("exec", {"command": "echo ran >>runs"}, tool_call_id="call_1")
WRITE = ToolCallPart("write", {"path": "b.txt", "content": "b\n"}, tool_call_id="call_2")


class Script:
    """A model that plays its lines and keeps what it was told."""

    def __init__(self, *lines: Sequence[ToolCallPart]) -> None:
        self._lines = [*lines, (TextPart("Done."),)]
        self.told: list[ModelMessage] = []

    def play(self, messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        self.told = messages
        return ModelResponse(parts=list(self._lines.pop(0)))

    def build(self, rail: Handrail | AsyncHandrail, **options: Any) -> Agent[None, Any]:
        model, outputs = FunctionModel(self.play), [str, DeferredToolRequests]
        return Agent(model, toolsets=[HandrailToolset(rail)], output_type=outputs, **options)

    @property
    def results(self) -> dict[str, tuple[Any, str]]:
        """The content and outcome of each call."""
        parts = (part for message in self.told for part in message.parts if isinstance(part, ToolReturnPart))
        return {part.tool_call_id: (part.content, part.outcome) for part in parts}


def test_a_later_approval_in_another_process_commits_the_preview_and_denies_the_rest(
    rail: Handrail, workspace: Path, tmp_path: Path
) -> None:
    run = asyncio.run(Script((APPEND, WRITE)).build(rail).run("go"))
    assert [call.tool_name for call in run.output.approvals] == ["exec", "write"]
    metadata = json.loads(json.dumps(run.output.metadata))
    assert "+ran" in metadata["call_1"]["preview"]
    stored = run.all_messages_json()
    assert not list(workspace.iterdir())
    with open_rail(workspace, tmp_path) as other:
        script = Script()
        answers = DeferredToolResults(approvals={"call_1": True, "call_2": ToolDenied("not now")})
        messages = ModelMessagesTypeAdapter.validate_json(stored)
        later = asyncio.run(script.build(other).run(message_history=messages, deferred_tool_results=answers))
        assert later.output == "Done."
        assert other.waiting() == ()
    assert (workspace / "runs").read_text() == "ran\n"
    assert script.results["call_1"][1] == "success"
    assert script.results["call_2"] == ("not now", "denied")
    assert not (workspace / "b.txt").exists()


def test_arguments_that_a_person_changed_are_previewed_and_asked_about(rail: Handrail, workspace: Path) -> None:
    agent = Script((APPEND,)).build(rail)
    run = asyncio.run(agent.run("go"))
    changed = ToolApproved(override_args={"command": "echo other >>runs"})
    answers = run.output.build_results(approvals={"call_1": changed})
    run = asyncio.run(agent.run(message_history=run.all_messages(), deferred_tool_results=answers))
    assert isinstance(run.output, DeferredToolRequests)
    assert "+other" in run.output.metadata["call_1"]["preview"]
    assert not (workspace / "runs").exists()


def test_a_handler_answers_inside_the_run(rail: Handrail, workspace: Path) -> None:
    def approve(_context: object, requests: DeferredToolRequests) -> DeferredToolResults:
        return requests.build_results(approve_all=True)

    script = Script((APPEND,))
    agent = script.build(rail, capabilities=[HandleDeferredToolCalls(handler=approve)])
    assert asyncio.run(agent.run("go")).output == "Done."
    assert (workspace / "runs").read_text() == "ran\n"


def test_errors_and_wrong_arguments_are_failed_results_and_images_are_shown(rail: Handrail, workspace: Path) -> None:
    (workspace / "a.png").write_bytes(base64.b64decode(PIXEL))
    calls = (
        ToolCallPart("read", {"path": "none"}, tool_call_id="1"),
        ToolCallPart("read", {"file": "a"}, tool_call_id="2"),
        ToolCallPart("read", {"path": "a.png"}, tool_call_id="3"),
    )
    script = Script(calls)
    asyncio.run(script.build(rail).run("go"))
    assert [script.results[key][1] for key in "123"] == ["failed", "failed", "success"]
    assert "path" in script.results["2"][0]
    shown = [part.content for part in script.told[-1].parts if isinstance(part, UserPromptPart)]
    assert any(isinstance(one, BinaryContent) and one.base64 == PIXEL for content in shown for one in content)


def test_cancelling_a_run_ends_its_command(rail: Handrail, workspace: Path) -> None:
    rail.set_mode("full")

    async def play() -> None:
        async with AsyncHandrail(rail) as session:
            begun, loop = asyncio.Event(), asyncio.get_running_loop()
            rail.subscribe(lambda _event: loop.call_soon_threadsafe(begun.set))
            call = ToolCallPart("exec", {"command": "sleep 60; echo ran >>runs"})
            task = asyncio.create_task(Script((call,)).build(session).run("go"))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(play())
    assert not (workspace / "runs").exists()
