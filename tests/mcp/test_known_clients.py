"""Clients that do otherwise than the protocol has it get what their model, and their person, can use."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from http_process import HttpProcess
from interims import interim
from mcp_types import Implementation
from stdio_process import Server, envelope

from handrail import Handrail, Output, tool
from handrail.mcp.calls import UnansweredCall
from handrail.mcp.elicitation import build_form
from handrail.mcp.protocol import Caller
from handrail.mcp.results import build_call_result
from handrail.protocol.permissions import Question

PUTS_STRUCTURE_FIRST = ("claude-code", "codex-mcp-client", "Visual Studio Code")
PAGED = "".join(f"{number}\n" for number in range(1, 11))


@pytest.mark.parametrize("name", PUTS_STRUCTURE_FIRST)
def test_a_client_that_shows_its_model_the_structure_instead_of_the_text_gets_the_text_alone(
    tmp_path: Path, name: str
) -> None:
    with Server(tmp_path) as server:
        (server.workspace / "a.txt").write_text("a\n")
        server.initialize(name=name)
        for tools in (server.asks("tools/list")["result"]["tools"] for _ in "ab"):  # before and with a session
            assert {"name", "inputSchema", "annotations"} <= set(tools[0])
            assert not any("outputSchema" in one for one in tools), "a promise of structure that is not kept"
        told = server.result(server.call("read", {"path": "a.txt"}))
        assert told == {"content": [{"type": "text", "text": "a\n"}], "isError": False}


def test_it_is_so_without_a_handshake_too(tmp_path: Path) -> None:
    who = envelope(clientInfo={"name": "claude-code", "version": "3"})
    with Server(tmp_path) as server:
        (server.workspace / "a.txt").write_text("a\n")
        tools = server.result(server.request("tools/list", {"_meta": who}))["tools"]
        assert not any("outputSchema" in one for one in tools)
        assert "structuredContent" not in server.result(server.call("read", {"path": "a.txt"}, _meta=who))
        other = server.result(server.call("read", {"path": "a.txt"}, _meta=envelope()))
        assert other["structuredContent"]["content"] == "a\n"


def test_over_http_each_client_gets_what_it_can_use(tmp_path: Path) -> None:
    async def talk(name: str) -> tuple[bool, bool]:
        async with server.client(client_info=Implementation(name=name, version="1")) as client:
            listed = await client.list_tools()
            called = await client.call_tool("ls", {})
            return listed.tools[0].output_schema is not None, called.structured_content is not None

    with HttpProcess(tmp_path) as server:
        assert asyncio.run(talk("claude-code")) == (False, False)
        assert asyncio.run(talk("somebody")) == (True, True)


def test_a_page_says_in_its_text_that_it_is_not_all(rail: Any, tmp_path: Path) -> None:
    session: Handrail = rail()
    session.call("write", {"path": "a.txt", "content": PAGED})
    some = build_call_result(session.call("read", {"path": "a.txt", "offset": 3, "limit": 2}))
    assert some["content"][0]["text"] == "3\n4\n[Read lines 3–4 of 10 of a.txt. Continue with offset 5.]\n"
    assert some["structuredContent"].content == "3\n4\n"
    whole = build_call_result(session.call("read", {"path": "a.txt"}))
    assert whole["content"][0]["text"] == PAGED


def test_what_a_person_is_warned_of_is_in_the_text_once(rail: Any) -> None:
    @tool(read_only=True, auto_execute=True)
    def warn() -> Output:
        """Warn."""
        return Output(summary="ok", content="no end of line\nIt is old.", data=None, warnings=("It is old.", "Look."))

    told = build_call_result(rail(tools=[warn]).call("warn", {}))
    assert told["content"][0]["text"] == "no end of line\nIt is old.\n[Look.]\n"


def test_a_client_that_sends_no_form_with_an_empty_field_gets_one_without() -> None:
    question = Question(tool_call_id="call-1", question="Which?", options=("a", "b"), custom=True)
    asks = UnansweredCall(call_id="call-1", interim=interim("question"), questions=(question,))
    assert list(build_form(asks, Caller(name="claude-code"))["requestedSchema"]["properties"]) == [
        "choice",
        "text",
    ]
    assert list(build_form(asks, Caller(name="codex-mcp-client"))["requestedSchema"]["properties"]) == ["choice"]
    free = UnansweredCall(
        call_id="call-1",
        interim=interim("question"),
        questions=(Question(tool_call_id="call-1", question="What?", custom=True),),
    )
    assert list(build_form(free, Caller(name="codex-mcp-client"))["requestedSchema"]["properties"]) == ["text"]


def test_codex_is_asked_for_permission_by_one_field(tmp_path: Path) -> None:
    with Server(tmp_path, mode="ask") as server:
        server.initialize("2025-06-18", "codex-mcp-client", elicitation={"form": {}, "url": {}})
        call = server.call("write", {"path": "a.txt", "content": "a\n"})
        form = server.sees(lambda message: message.get("method") == "elicitation/create")
        assert list(form["params"]["requestedSchema"]["properties"]) == ["answer"], json.dumps(form)
        server.send({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": {"answer": "once"}}})
        assert server.result(call)["isError"] is False
