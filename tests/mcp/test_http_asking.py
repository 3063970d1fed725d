"""A call over HTTP that a person has to say yes to: by a form, by rounds, or by somebody who answers elsewhere."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_process import PATIENCE, HttpProcess
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

WRITE = {"path": "a.txt", "content": "a\n"}
ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])


class _Person:
    """Answers every form with the same choice, and remembers what it was shown."""

    def __init__(self, choice: str | None) -> None:
        self._choice = choice
        self.shown: list[str] = []

    async def __call__(self, _: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.shown.append(params.message)
        if self._choice is None:
            return ElicitResult(action="decline")
        assert self._choice in [one["const"] for one in params.requested_schema["properties"]["answer"]["oneOf"]]
        return ElicitResult(action="accept", content={"answer": self._choice})


@ERAS
@pytest.mark.parametrize(("choice", "written"), [("once", True), (None, False)])
def test_the_person_at_the_client_says_it(tmp_path: Path, era: str, choice: str | None, written: bool) -> None:
    person = _Person(choice)

    async def talk() -> None:
        async with server.client(era, elicitation_callback=person) as client:
            done = await client.call_tool("write", WRITE)
            assert done.is_error != written, done
            code = done.structured_content["error"]
            assert code is None if written else code["code"] == "PERMISSION_DENIED"

    with HttpProcess(tmp_path, "--mode", "ask") as server:
        asyncio.run(talk())
    assert len(person.shown) == 1
    assert "a.txt" in person.shown[0]
    assert (server.workspace / "a.txt").exists() == written


@ERAS
def test_somebody_else_says_it_while_the_call_waits(tmp_path: Path, era: str) -> None:
    told: list[str | None] = []

    async def hear(_progress: float, _total: float | None, message: str | None) -> None:
        told.append(message)

    async def talk() -> None:
        async with server.client(era) as client:
            call = asyncio.ensure_future(client.call_tool("write", WRITE, progress_callback=hear))
            request = await asyncio.to_thread(server.waiting)
            await asyncio.to_thread(server.approvals, "allow", request)
            assert not (await call).is_error

    with HttpProcess(tmp_path, "--mode", "ask") as server:
        asyncio.run(talk())
    assert (server.workspace / "a.txt").read_text() == "a\n"
    assert any(message is not None and "handrail approvals" in message for message in told), told


def test_a_form_that_is_open_is_taken_back_when_somebody_else_says_it(tmp_path: Path) -> None:
    taken_back = asyncio.Event()

    async def person(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            taken_back.set()
        return ElicitResult(action="cancel")

    async def talk() -> None:
        async with server.client("legacy", elicitation_callback=person) as client:
            call = asyncio.ensure_future(client.call_tool("write", WRITE))
            await asyncio.to_thread(server.approvals, "allow", await asyncio.to_thread(server.waiting))
            assert not (await call).is_error
            await asyncio.wait_for(taken_back.wait(), PATIENCE)

    with HttpProcess(tmp_path, "--mode", "ask") as server:
        asyncio.run(talk())


@ERAS
def test_a_call_that_is_given_up_waits_on_and_the_same_call_gets_what_came_of_it(tmp_path: Path, era: str) -> None:
    async def talk() -> None:
        async with server.client(era) as client:
            call = asyncio.ensure_future(client.call_tool("write", WRITE))
            request = await asyncio.to_thread(server.waiting)
            call.cancel()
            await asyncio.to_thread(server.approvals, "allow", request)
            again = await client.call_tool("write", WRITE)
            assert not again.is_error, again
            assert len((await asyncio.to_thread(server.approvals))["waiting"]) == 0

    with HttpProcess(tmp_path, "--mode", "ask") as server:
        asyncio.run(talk())
    assert (server.workspace / "a.txt").read_text() == "a\n"


def test_a_state_that_is_not_ours_runs_nothing(tmp_path: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "write",
    }
    with HttpProcess(tmp_path, "--mode", "ask") as server, httpx2.Client(timeout=PATIENCE) as web:

        def call(**more: Any) -> Any:
            params = {"name": "write", "arguments": WRITE, "_meta": meta, **more}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            return web.post(server.url, json=body, headers={**headers, **server.headers}).json()

        asked = call()["result"]
        assert asked["resultType"] == "input_required"
        yes = {name: {"action": "accept", "content": {"answer": "once"}} for name in asked["inputRequests"]}
        for state in (asked["requestState"][:-4], "h1.e30.AAAA", ""):
            refused = call(requestState=state, inputResponses=yes)
            assert refused["error"]["code"] == -32602, refused
    assert not (server.workspace / "a.txt").exists()


def test_where_nobody_answers_in_time_the_call_is_left_and_the_same_call_collects_it(tmp_path: Path) -> None:
    hurry = (
        "import sys; from handrail.mcp.http import asking; asking.SECONDS = 0.3; "
        "from handrail.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )

    async def talk() -> None:
        async with server.client("legacy") as client:
            left = (await client.call_tool("write", WRITE)).structured_content["error"]
            assert left["code"] == "PERMISSION_REQUIRED"
            await asyncio.to_thread(server.approvals, "allow", left["details"]["id"])
            assert not (await client.call_tool("write", WRITE)).is_error
            again = (await client.call_tool("write", WRITE)).structured_content["error"]
            assert again["code"] == "PERMISSION_REQUIRED", "it was handed over twice"

    words = [sys.executable, "-c", hurry, "mcp", "--http", "127.0.0.1:0"]
    with HttpProcess(tmp_path, "--mode", "ask", words=words) as server:
        asyncio.run(talk())
