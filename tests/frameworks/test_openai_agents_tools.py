"""The tools for the OpenAI Agents SDK: interruptions whose state is stored, answered later and resumed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from parked_session import open_rail

from handrail import Handrail


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")


def call(name: str, key: str, **arguments: Any) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call", name=name, call_id=key, arguments=json.dumps(arguments), status="completed"
    )


APPEND = call("exec", "call_1", command="echo ran >>runs")
WRITE = call("write", "call_2", path="b.txt", content="b\n")


class Script:
    """A model that plays its lines and keeps what it was told."""

    def __init__(self, *lines: list[ResponseFunctionToolCall]) -> None:
        self._lines: list[list[Any]] = [*lines]
        self.told: Any = None

    async def get_response(self, *_: Any, **request: Any) -> Any:
        from agents import ModelResponse, Usage

        self.told = request["input"]
        text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
        done = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=self._lines.pop(0) if self._lines else [done], usage=Usage(), response_id=None)

    def build(self, rail: Handrail) -> Any:
        from agents import Agent, Model

        from handrail.frameworks.openai_agents import build_tools

        own = self

        class ScriptModel(Model):
            get_response = staticmethod(own.get_response)

            def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        return Agent(name="coder", model=ScriptModel(), tools=build_tools(rail))

    @property
    def results(self) -> dict[str, str]:
        return {one["call_id"]: one["output"] for one in self.told if one.get("type") == "function_call_output"}


def run(agent: Any, given: Any) -> Any:
    from agents import Runner

    return asyncio.run(Runner.run(agent, given))


def test_a_later_answer_in_another_process_commits_the_preview_and_denies_the_rest(
    rail: Handrail, workspace: Path, tmp_path: Path
) -> None:
    from agents import RunState

    from handrail.frameworks.openai_agents import find_request

    first = run(Script([APPEND, WRITE, call("read", "call_3", path="none")]).build(rail), "go")
    assert [item.name for item in first.interruptions] == ["exec", "write"]
    request = find_request(rail, first.interruptions[0])
    assert request is not None
    assert request.preview is not None
    assert "+ran" in request.preview.text
    stored = first.to_state().to_string()
    assert not list(workspace.iterdir())
    with open_rail(workspace, tmp_path) as other:
        script = Script()
        agent = script.build(other)
        state = asyncio.run(RunState.from_string(agent, stored))
        for item in state.get_interruptions():
            if item.name == "exec":
                state.approve(item)
            else:
                state.reject(item, rejection_message="not now")
        assert run(agent, state).final_output == "Done."
        assert other.waiting() == ()
    assert (workspace / "runs").read_text() == "ran\n"
    assert not (workspace / "b.txt").exists()
    assert "changed 1 file" in script.results["call_1"]
    assert script.results["call_2"] == "not now"
    assert "none" in script.results["call_3"]


def test_a_tool_that_is_always_approved_commits_its_later_previews(rail: Handrail, workspace: Path) -> None:
    agent = Script([APPEND], [call("exec", "call_2", command="echo again >>runs")]).build(rail)
    first = run(agent, "go")
    state = first.to_state()
    state.approve(first.interruptions[0], always_approve=True)
    assert run(agent, state).final_output == "Done."
    assert (workspace / "runs").read_text() == "ran\nagain\n"
    assert rail.waiting() == ()
