"""The helpers for the SDKs of OpenAI and Anthropic: the calls of one message, parked and resumed as a whole."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from parked_session import PIXEL, open_rail

from handrail import Answer, AsyncHandrail, Handrail
from handrail.frameworks import anthropic_sdk, openai_sdk
from handrail.frameworks.message_calls import CUT_OFF, ToolMessages, WaitingMessage

Call = tuple[str, str, dict[str, Any] | str]
"""Id, name and arguments; a text is what came of them."""
READ: Call = ("call_1", "read", {"path": "a.txt"})
APPEND: Call = ("call_2", "exec", {"command": "echo ran >>runs"})
WRITE: Call = ("call_3", "write", {"path": "b.txt", "content": "b\n"})


def write_json(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def make_completion(*calls: Call, is_cut_off: bool = False) -> ChatCompletion:
    made = [
        {"id": key, "type": "function", "function": {"name": name, "arguments": write_json(arguments)}}
        for key, name, arguments in calls
    ]
    message = {"role": "assistant", "content": None if made else "Done.", "tool_calls": made or None}
    choice = {"index": 0, "finish_reason": "length" if is_cut_off else "tool_calls", "message": message}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return ChatCompletion.model_validate(whole)


def make_response(*calls: Call, is_cut_off: bool = False) -> Response:
    output = [
        {"type": "function_call", "id": f"fc_{key}", "call_id": key, "name": name, "arguments": write_json(arguments)}
        for key, name, arguments in calls
    ]
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": output, "tools": []}
    status = "incomplete" if is_cut_off else "completed"
    return Response.model_validate({**whole, "status": status, "parallel_tool_calls": True, "tool_choice": "auto"})


def make_message(*calls: Call, is_cut_off: bool = False) -> Message:
    content = [
        {"type": "tool_use", "id": key, "name": name, "input": arguments if isinstance(arguments, dict) else {}}
        for key, name, arguments in calls
    ]
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1}
    reason = "max_tokens" if is_cut_off else "tool_use"
    return Message.model_validate({**whole, "stop_reason": reason, "stop_sequence": None, "usage": usage})


def read_completion(messages: list[dict[str, Any]]) -> dict[str, str]:
    return {one["tool_call_id"]: one["content"] for one in messages if one["role"] == "tool"}


def read_response(messages: list[dict[str, Any]]) -> dict[str, str]:
    outputs = {one["call_id"]: one["output"] for one in messages}
    return {key: one if isinstance(one, str) else one[0]["text"] for key, one in outputs.items()}


def read_message(messages: list[dict[str, Any]]) -> dict[str, str]:
    return {one["tool_use_id"]: one["content"][0]["text"] for message in messages for one in message["content"]}


WIRES = [
    pytest.param(make_completion, openai_sdk.run_calls, read_completion, id="chat completions"),
    pytest.param(make_response, openai_sdk.run_calls, read_response, id="responses"),
    pytest.param(make_message, anthropic_sdk.run_calls, read_message, id="messages"),
]
on_every_wire = pytest.mark.parametrize(("make", "run", "read"), WIRES)
Make, Run, Read = Callable[..., Any], Callable[..., Any], Callable[[list[dict[str, Any]]], dict[str, str]]


@on_every_wire
def test_a_parked_message_is_answered_by_another_process_and_its_preview_committed(
    rail: Handrail, workspace: Path, tmp_path: Path, make: Make, run: Run, read: Read
) -> None:
    (workspace / "a.txt").write_text("one\n")
    response = make(READ, APPEND, WRITE)
    parked = run(rail, response)
    assert isinstance(parked, WaitingMessage)
    assert [request.tool_name for request in parked.requests] == ["exec", "write"]
    with open_rail(workspace, tmp_path) as other:
        outcome = run(other, response)
        answers = {"exec": Answer(kind="once"), "write": Answer(kind="deny", reason="not now")}
        while isinstance(outcome, WaitingMessage):
            request = outcome.requests[0]
            outcome = outcome.answer(request, answers[request.tool_name])
        assert run(other, response) == outcome, "the same message again runs nothing"
    told = read(outcome.messages)
    assert list(told) == ["call_1", "call_2", "call_3"]
    assert told["call_1"] == "one\n"
    assert "changed 1 file" in told["call_2"]
    assert "not now" in told["call_3"]
    assert (workspace / "runs").read_text() == "ran\n"
    assert [result.ok for result in outcome.results] == [True, True, False]


@on_every_wire
def test_a_call_that_was_cut_off_does_not_run(
    rail: Handrail, workspace: Path, make: Make, run: Run, read: Read
) -> None:
    (workspace / "a.txt").write_text("one\n")
    rail.set_mode("full")
    outcome = run(rail, make(READ, APPEND, is_cut_off=True))
    assert read(outcome.messages) == {"call_1": "one\n", "call_2": CUT_OFF}
    assert not (workspace / "runs").exists()


@on_every_wire
def test_a_message_without_calls_has_no_results(rail: Handrail, make: Make, run: Run, read: Read) -> None:
    assert run(rail, make()) == ToolMessages([], ())
    assert read([]) == {}


@pytest.mark.parametrize("make", [make_completion, make_response])
def test_arguments_that_are_not_json_are_explained_to_the_model(rail: Handrail, make: Make) -> None:
    outcome = openai_sdk.run_calls(rail, make(("call_1", "read", '{"path": ')))
    assert isinstance(outcome, ToolMessages)
    [result] = outcome.results
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT"


def test_images_reach_the_model_on_every_wire(rail: Handrail, workspace: Path) -> None:
    (workspace / "a.png").write_bytes(base64.b64decode(PIXEL))
    look: Call = ("call_1", "read", {"path": "a.png"})
    completion, response = (openai_sdk.run_calls(rail, make(look)) for make in (make_completion, make_response))
    message = anthropic_sdk.run_calls(rail, make_message(look))
    for outcome in (completion, response, message):
        assert isinstance(outcome, ToolMessages)
        assert PIXEL in json.dumps(outcome.messages)
        assert outcome.messages[0].get("role") in {"tool", "user", None}


def test_errors_are_marked_for_anthropic(rail: Handrail) -> None:
    outcome = anthropic_sdk.run_calls(rail, make_message(READ))
    assert isinstance(outcome, ToolMessages)
    assert outcome.messages[0]["content"][0]["is_error"] is True


def test_the_tool_list_of_the_responses_api_has_the_same_functions(rail: Handrail) -> None:
    listed = openai_sdk.build_response_tools(rail)
    functions = [one["function"] for one in rail.openai_tools()]
    assert [{key: one[key] for key in functions[0]} for one in listed] == functions
    assert {(one["type"], one["strict"]) for one in listed} == {("function", False)}


def test_cancelling_the_wait_ends_the_calls_of_the_message(rail: Handrail, workspace: Path) -> None:
    rail.set_mode("full")
    slow: Call = ("call_1", "exec", {"command": "sleep 60; echo ran >>runs"})

    async def play() -> None:
        async with AsyncHandrail(rail) as session:
            begun, loop = asyncio.Event(), asyncio.get_running_loop()
            rail.subscribe(lambda _event: loop.call_soon_threadsafe(begun.set))
            task = asyncio.create_task(anthropic_sdk.run_calls_async(session, make_message(slow, APPEND)))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(play())
    assert not (workspace / "runs").exists()
