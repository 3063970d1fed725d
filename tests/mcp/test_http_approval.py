"""A call over HTTP that a person has to say yes to: by a form, by rounds, or by somebody who answers elsewhere."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_process import PATIENCE, HttpProcess, environment
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from handrail.mcp.http.request_runner import wait_until_withdrawn
from journals import check_journals

_NUMBERS = itertools.count(1)
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    """One for all of them: each test asks for a file of its own."""
    folder = tmp_path_factory.mktemp("asking")
    with HttpProcess(folder, "--mode", "ask") as one:
        yield one
        assert one.stop() == 0
    check_journals(folder, "asking over HTTP", all_of_it=False)


class _Asked:
    """A call that has to be asked about, and what the command line knows of it."""

    def __init__(self, server: HttpProcess, name: str) -> None:
        self.call = {"path": f"{name}.txt", "content": "a\n"}
        self.file = server.workspace / f"{name}.txt"
        self._server = server

    async def waiting(self) -> list[str]:
        """The ids of the requests about it."""
        found = (await asyncio.to_thread(self._server.approvals))["waiting"]
        return [one["id"] for one in found if self.file.name in str(one)]

    async def allow(self) -> None:
        """Says yes from elsewhere, as soon as it waits."""
        async with asyncio.timeout(PATIENCE):
            while not (found := await self.waiting()):
                await asyncio.sleep(0.05)
        await asyncio.to_thread(self._server.approvals, "allow", found[0])


@pytest.fixture
def asked(server: HttpProcess) -> _Asked:
    return _Asked(server, f"file-{next(_NUMBERS)}")


@ERAS
@pytest.mark.parametrize(("choice", "written"), [("once", True), (None, False)])
def test_the_person_at_the_client_says_it(
    server: HttpProcess, asked: _Asked, era: str, choice: str | None, written: bool
) -> None:
    person = _Person(choice)

    async def talk() -> None:
        async with server.client(era, elicitation_callback=person) as client:
            done = await client.call_tool("write", asked.call)
            assert done.is_error != written, done
            code = done.structured_content["error"]
            assert code is None if written else code["code"] == "PERMISSION_DENIED"

    asyncio.run(talk())
    assert len(person.shown) == 1
    assert asked.file.name in person.shown[0]
    assert asked.file.exists() == written


@ERAS
def test_somebody_else_says_it_while_the_call_waits(server: HttpProcess, asked: _Asked, era: str) -> None:
    told: list[str | None] = []

    async def hear(_progress: float, _total: float | None, message: str | None) -> None:
        told.append(message)

    async def talk() -> None:
        async with server.client(era) as client:
            call = asyncio.ensure_future(client.call_tool("write", asked.call, progress_callback=hear))
            await asked.allow()
            assert not (await call).is_error

    asyncio.run(talk())
    assert asked.file.read_text() == "a\n"
    assert any(message is not None and "handrail approvals" in message for message in told), told


def test_a_form_that_is_open_is_taken_back_when_somebody_else_says_it(server: HttpProcess, asked: _Asked) -> None:
    taken_back = asyncio.Event()

    async def person(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            taken_back.set()
        return ElicitResult(action="cancel")

    async def talk() -> None:
        async with server.client("legacy", elicitation_callback=person) as client:
            call = asyncio.ensure_future(client.call_tool("write", asked.call))
            await asked.allow()
            assert not (await call).is_error
            await asyncio.wait_for(taken_back.wait(), PATIENCE)

    asyncio.run(talk())


@ERAS
def test_a_call_that_is_given_up_waits_on_and_the_same_call_gets_what_came_of_it(
    server: HttpProcess, asked: _Asked, era: str
) -> None:
    async def talk() -> None:
        async with server.client(era) as client:
            call = asyncio.ensure_future(client.call_tool("write", asked.call))
            async with asyncio.timeout(PATIENCE):
                while not await asked.waiting():
                    await asyncio.sleep(0.05)
            call.cancel()
            await asked.allow()
            again = await client.call_tool("write", asked.call)
            assert not again.is_error, again
            assert await asked.waiting() == []

    asyncio.run(talk())
    assert asked.file.read_text() == "a\n"


def test_a_state_that_is_not_ours_runs_nothing(server: HttpProcess, asked: _Asked) -> None:
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
    with httpx2.Client(timeout=PATIENCE) as web:

        def call(**more: Any) -> Any:
            params = {"name": "write", "arguments": asked.call, "_meta": meta, **more}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            return web.post(server.url, json=body, headers={**headers, **server.headers}).json()

        round_one = call()["result"]
        assert round_one["resultType"] == "input_required"
        yes = {name: {"action": "accept", "content": {"answer": "once"}} for name in round_one["inputRequests"]}
        for state in (round_one["requestState"][:-4], "h1.e30.AAAA", ""):
            refused = call(requestState=state, inputResponses=yes)
            assert refused["error"]["code"] == -32602, refused
        assert not asked.file.exists()
        assert "error" not in call(requestState=round_one["requestState"], inputResponses=yes)
    assert asked.file.exists()


def test_where_nobody_answers_in_time_the_call_is_left_and_the_same_call_collects_it(tmp_path: Path) -> None:
    settings = Path(environment(tmp_path)["HOME"], ".config", "handrail")
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text('[mcp]\npermission_wait = "300 ms"\n')
    write = {"path": "a.txt", "content": "a\n"}

    async def talk() -> None:
        async with server.client("legacy") as client:
            left = (await client.call_tool("write", write)).structured_content["error"]
            assert left["code"] == "PERMISSION_REQUIRED"
            assert "Only the user can answer: handrail approvals allow " in left["message"]
            assert left["message"].endswith(" After that, repeat the call with the same arguments to get its result.")
            await asyncio.to_thread(server.approvals, "allow", left["details"]["id"])
            assert not (await client.call_tool("write", write)).is_error
            again = (await client.call_tool("write", write)).structured_content["error"]
            assert again["code"] == "PERMISSION_REQUIRED", "it was handed over twice"

    with HttpProcess(tmp_path, "--mode", "ask") as server:
        asyncio.run(talk())


def test_a_form_that_cannot_be_taken_back_keeps_nobody() -> None:
    async def end() -> None:
        open_at_client, told = asyncio.Event(), asyncio.Event()

        async def stubborn() -> None:
            try:
                open_at_client.set()
                await told.wait()
            except asyncio.CancelledError:
                await told.wait()  # as the SDK does, to a client that reads nothing any more

        form = asyncio.ensure_future(stubborn())
        await open_at_client.wait()
        async with asyncio.timeout(PATIENCE):
            await wait_until_withdrawn(form, 0.01)
        assert not form.done()
        told.set()
        await form

    asyncio.run(end())
