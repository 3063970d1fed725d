"""The server over HTTP, with the official SDK's client, in both eras of the protocol."""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_process import PATIENCE, HttpProcess
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from journals import check_journals

ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])
_VERSION = {"legacy": "2025-11-25", "auto": "2026-07-28"}
EIGHT = ["read", "write", "edit", "find", "grep", "ls", "exec", "process"]

_PATIENT = (
    "import sys; from handrail.mcp.http import application; application._GOODBYE_SECONDS = 30; "
    "from handrail.cli.main import run; sys.exit(run(sys.argv[1:]))"
)
"""On a machine that is busy with other things two seconds may not do for an answer."""


def _talk(
    server: HttpProcess,
    era: str,
    said: Callable[[Client], Coroutine[Any, Any, None]],
    patience: float = PATIENCE,
    **options: Any,
) -> None:
    async def talk() -> None:
        async with asyncio.timeout(patience), server.client(era, patience=patience, **options) as client:
            await said(client)

    asyncio.run(talk())


class _Sleeper:
    """A command that runs until it is ended, and that can be seen from outside."""

    def __init__(self) -> None:
        self._seconds = f"{random.randint(10_000, 90_000)}.{random.randint(100_000, 999_999)}"
        self.command = f"sleep {self._seconds}"

    def runs(self) -> bool:
        """Whether any process of this machine is it."""
        mark = self._seconds.encode()
        return any(mark in _command_line(number) for number in os.listdir("/proc") if number.isdigit())

    async def wait(self, *, running: bool) -> None:
        """Waits until it does, or does no more."""
        async with asyncio.timeout(PATIENCE):
            while self.runs() != running:
                await asyncio.sleep(0.02)


def _command_line(number: str) -> bytes:
    try:
        return Path("/proc", number, "cmdline").read_bytes().split(b"\0sh\0")[0]
    except OSError:
        return b""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    """One for all tests that leave it as it was. After all of them it still ends as it should."""
    folder = tmp_path_factory.mktemp("served")
    with HttpProcess(folder, "--mode", "full") as one:
        yield one
        assert one.stop() == 0
    assert (one.printed, len(one.said)) == ("", 2), one.said
    check_journals(folder, "the server over HTTP", all_of_it=False)


@ERAS
def test_a_client_lists_the_eight_and_calls_them(server: HttpProcess, era: str) -> None:
    async def said(client: Client) -> None:
        assert client.protocol_version == _VERSION[era]
        listed = (await client.list_tools()).tools
        assert [one.name for one in listed] == EIGHT
        written = await client.call_tool("write", {"path": f"{era}.txt", "content": "äöü\n"})
        assert not written.is_error, written
        read = await client.call_tool("read", {"path": f"{era}.txt"})
        assert read.content[0].text == "äöü\n"
        assert read.structured_content["content"] == "äöü\n"

    _talk(server, era, said)
    assert (server.workspace / f"{era}.txt").read_text() == "äöü\n"


@ERAS
def test_a_call_that_fails_is_a_result_and_a_tool_that_is_not_there_is_an_error(server: HttpProcess, era: str) -> None:
    async def said(client: Client) -> None:
        missing = await client.call_tool("read", {"path": "missing.txt"})
        assert missing.is_error
        assert missing.structured_content["error"]["code"] == "NOT_FOUND"
        wrong = await client.call_tool("read", {"pfad": 1})
        assert wrong.structured_content["error"]["code"] == "INVALID_ARGUMENT"
        with pytest.raises(MCPError, match="nothing"):
            await client.call_tool("nothing", {})

    _talk(server, era, said)


@ERAS
def test_who_asks_to_be_told_how_far_it_is_hears_what_a_command_prints(server: HttpProcess, era: str) -> None:
    heard: list[str | None] = []

    async def hear(_progress: float, _total: float | None, message: str | None) -> None:
        heard.append(message)

    async def said(client: Client) -> None:
        command = "for i in 1 2 3; do echo line $i; sleep 0.3; done"
        done = await client.call_tool("exec", {"command": command}, progress_callback=hear)
        assert not done.is_error, done
        await client.call_tool("exec", {"command": "echo quiet"})

    _talk(server, era, said)
    assert any(message is not None and "line" in message for message in heard), heard
    assert not any(message is not None and "quiet" in message for message in heard)


@ERAS
def test_a_call_that_its_client_cancels_ends_and_the_session_goes_on(server: HttpProcess, era: str) -> None:
    sleeper = _Sleeper()

    async def said(client: Client) -> None:
        call = asyncio.ensure_future(client.call_tool("exec", {"command": sleeper.command}))
        await sleeper.wait(running=True)
        call.cancel()
        await sleeper.wait(running=False)
        again = await client.call_tool("exec", {"command": "echo still here"})
        assert "still here" in again.content[0].text

    _talk(server, era, said)


def test_a_client_without_a_handshake_that_hangs_up_ends_its_call(server: HttpProcess) -> None:
    sleeper = _Sleeper()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "exec", "arguments": {"command": sleeper.command}, "_meta": meta}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "exec",
    }

    async def hang_up() -> None:
        async with httpx2.AsyncClient(headers={**headers, **server.headers}, timeout=PATIENCE) as web:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            call = asyncio.ensure_future(web.post(server.url, json=body))
            await sleeper.wait(running=True)
            call.cancel()
        await sleeper.wait(running=False)

    asyncio.run(hang_up())


@pytest.mark.parametrize(("era", "number"), [("legacy", signal.SIGTERM), ("auto", signal.SIGINT)])
def test_a_signal_ends_the_server_and_all_that_it_runs(tmp_path: Path, era: str, number: signal.Signals) -> None:
    sleeper = _Sleeper()
    came: list[Any] = []
    codes: list[int] = []
    left: list[bool] = []

    async def said(client: Client) -> None:
        call = asyncio.ensure_future(client.call_tool("exec", {"command": sleeper.command}))
        await sleeper.wait(running=True)
        server.process.send_signal(number)
        came.append(await asyncio.gather(call, return_exceptions=True))
        codes.append(await asyncio.to_thread(server.process.wait, PATIENCE))
        left.append(sleeper.runs())

    # The client has nobody to say goodbye to.
    words = [sys.executable, "-c", _PATIENT, "mcp", "--http", "127.0.0.1:0"]
    with HttpProcess(tmp_path, "--mode", "full", words=words) as server, suppress(ExceptionGroup):
        _talk(server, era, said)
    assert (codes, left) == ([0], [False])
    assert came[0][0].structured_content["error"]["code"] == "CANCELLED"
    assert server.printed == ""
    assert len(server.said) == 2, server.said


def test_the_token_that_is_made_up_is_shown_once_and_lets_in(tmp_path: Path) -> None:
    async def said(client: Client) -> None:
        await client.list_tools()

    with HttpProcess(tmp_path, token=None) as server:
        assert len(server.token) >= 40
        _talk(server, "legacy", said)
        server.stop()
    assert "".join(server.said).count(server.token) == 1


def test_a_session_with_a_handshake_that_is_ended_ends_its_calls(server: HttpProcess) -> None:
    sleeper = _Sleeper()
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    call = {"name": "exec", "arguments": {"command": sleeper.command}}

    async def talk() -> None:
        headers = {"accept": "application/json, text/event-stream", **server.headers}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as web:

            async def post(**message: Any) -> httpx2.Response:
                return await web.post(server.url, json={"jsonrpc": "2.0", **message})

            greeted = await post(id=1, method="initialize", params=client)
            web.headers["mcp-session-id"] = greeted.headers["mcp-session-id"]
            await post(method="notifications/initialized")
            waiting = asyncio.ensure_future(post(id=2, method="tools/call", params=call))
            await sleeper.wait(running=True)
            assert (await web.delete(server.url)).status_code == 200
            await sleeper.wait(running=False)
            await asyncio.wait([waiting], timeout=PATIENCE)
            assert (await post(id=3, method="ping")).status_code == 404

    asyncio.run(talk())


@ERAS
def test_many_calls_at_once_are_all_answered(server: HttpProcess, era: str, count: Callable[[int], int]) -> None:
    async def said(client: Client) -> None:
        calls = [client.call_tool("read", {"path": f"many/{number}.txt"}) for number in range(count(1_000))]
        done = await asyncio.gather(*calls)
        assert [one.content[0].text for one in done] == [f"{number}\n" for number in range(len(calls))]

    (server.workspace / "many").mkdir(exist_ok=True)
    for number in range(count(1_000)):
        (server.workspace / "many" / f"{number}.txt").write_text(f"{number}\n")
    _talk(server, era, said, patience=10 * PATIENCE)  # a busy machine may need minutes for the full count
