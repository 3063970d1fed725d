"""Whatever comes over HTTP from somebody with the token is answered, and the server is there for the next one."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_process import PATIENCE, HttpProcess, environment
from hypothesis import given
from hypothesis import strategies as st

_HOLD = """
import pathlib, time
from handrail import Context, tool

@tool(read_only=True, auto_execute=True)
def hold(context: Context, folder: str) -> str:
    "Says that it has begun, and waits."
    pathlib.Path(folder, "begun").touch()
    while not pathlib.Path(folder, "go").exists():
        context.check_cancelled()
        time.sleep(0.005)
    return "went on"
"""
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_INFO = {"name": "fuzz", "version": "1"}
_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _INFO}
_KEY = "io.modelcontextprotocol/"
_META = {f"{_KEY}protocolVersion": "2026-07-28", f"{_KEY}clientInfo": _INFO, f"{_KEY}clientCapabilities": {}}
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
_METHODS = st.sampled_from(["tools/call", "tools/list", "logging/setLevel", "initialize", "ping", "x"]) | st.text()
_CALLS = st.fixed_dictionaries({}, optional={"name": st.just("read") | _JSON, "arguments": _JSON, "_meta": _JSON})
_MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")}, optional={"id": _JSON, "method": _METHODS | _JSON, "params": _CALLS | _JSON}
)
_BODIES = st.binary(max_size=60) | (_MESSAGES | _JSON).map(lambda said: json.dumps(said).encode())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    folder = tmp_path_factory.mktemp("fuzzed")
    settings = Path(environment(folder)["HOME"], ".config", "handrail")
    settings.mkdir(parents=True)
    (folder / "tools").mkdir()
    (folder / "tools" / "own.py").write_text(_HOLD)
    (settings / "config.toml").write_text(f'[tools]\nfolders = ["{folder}/tools"]\n')
    with HttpProcess(folder, "--mode", "full") as one:
        (one.workspace / "a.txt").write_text("here\n")
        yield one
        assert one.stop() == 0
    assert len(one.said) == 2, one.said


@asynccontextmanager
async def _greeted(server: HttpProcess) -> AsyncIterator[Callable[..., Any]]:
    """Posts messages of a connection with a handshake."""
    async with httpx2.AsyncClient(headers={**_ACCEPT, **server.headers}, timeout=PATIENCE) as web:

        async def post(body: bytes | None = None, **message: Any) -> httpx2.Response:
            return await web.post(server.url, content=body or json.dumps({"jsonrpc": "2.0", **message}).encode())

        hello = await post(id="hello", method="initialize", params=_HELLO)
        web.headers["mcp-session-id"] = hello.headers["mcp-session-id"]
        await post(method="notifications/initialized")
        yield post
        await web.delete(server.url)


def _answers(response: httpx2.Response) -> list[dict[str, Any]]:
    """What answers requests, in a stream or by itself."""
    if response.headers["content-type"].startswith("application/json"):
        return [response.json()]
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return [message for message in map(json.loads, lines) if "method" not in message]


def _read(path: str = "a.txt") -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": "read", "arguments": {"path": path}}}


@given(_BODIES, st.sampled_from(["none", "2025-11-25", "2026-07-28"]), st.sampled_from(["tools/call", "ping", "\xff"]))
def test_whatever_is_posted_is_answered(server: HttpProcess, body: bytes, version: str, method: str) -> None:
    headers = {**_ACCEPT, **server.headers}
    if version != "none":
        headers |= {"mcp-protocol-version": version, "mcp-method": method.encode("latin-1")}  # type: ignore[dict-item]
    with httpx2.Client(headers=headers, timeout=PATIENCE) as web:
        response = web.post(server.url, content=body)
    assert response.status_code < 500, response.text
    assert not {"handrail.", "Traceback"} & set(response.text.split()), response.text


@pytest.mark.parametrize(
    "body",
    [
        b"nonsense",
        b"[]",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["no JSON", "no request", "no end", "too deep"],
)
def test_what_is_broken_is_refused_and_the_connection_goes_on(server: HttpProcess, body: bytes) -> None:
    async def talk() -> None:
        async with _greeted(server) as post:
            refused = await post(body)
            assert refused.status_code == 400, refused.text
            assert _answers(await post(id=2, method="ping")) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"method": "prompts/list"}, -32601),
        ({"method": "nothing/known"}, -32601),
        ({"method": "tools/call", "params": {}}, -32602),
        ({"method": "tools/call", "params": {"name": "nope", "arguments": {}}}, -32602),
    ],
)
def test_what_is_not_there_is_an_error_of_the_protocol(server: HttpProcess, said: dict[str, Any], code: int) -> None:
    async def talk() -> None:
        async with _greeted(server) as post:
            [answer] = _answers(await post(id=1, **said))
            assert answer["error"]["code"] == code
            assert _answers(await post(id=2, method="ping")) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]

    asyncio.run(talk())


def test_an_id_that_is_on_its_way_is_refused_and_the_first_goes_on(server: HttpProcess, tmp_path: Path) -> None:
    """Else one of the two would wait for ever, and the other could be given what was read for the first."""

    async def talk() -> None:
        async with asyncio.timeout(PATIENCE), _greeted(server) as post:
            first = await _held(post, 7, tmp_path)
            for same in (7, "7"):  # they are the same to who answers by them
                refused = await post(id=same, **_read())
                [answer] = _answers(refused)
                assert (refused.status_code, answer["id"], answer["error"]["code"]) == (400, same, -32600)
            (tmp_path / "go").touch()
            [answer] = _answers(await first)
            assert answer["result"]["content"][0]["text"] == "went on"
            assert await _free_again(post, 7) == "here\n"

    asyncio.run(talk())


def test_an_id_is_on_its_way_until_its_call_is_over_though_its_client_hung_up(
    server: HttpProcess, tmp_path: Path
) -> None:
    async def talk() -> None:
        async with asyncio.timeout(PATIENCE), _greeted(server) as post:
            first = await _held(post, 8, tmp_path)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            [answer] = _answers(await post(id=8, **_read()))
            assert answer["error"]["code"] == -32600, "it could be given what the first one comes to"
            (tmp_path / "go").touch()
            assert await _free_again(post, 8) == "here\n"

    asyncio.run(talk())


async def _free_again(post: Callable[..., Any], number: int) -> str:
    """What is read under an id, once nobody is at work on the request that had it: a moment after its answer."""
    while "error" in (answer := _answers(await post(id=number, **_read()))[0]):
        assert answer["error"]["code"] == -32600
    return answer["result"]["content"][0]["text"]


async def _held(post: Callable[..., Any], number: int, folder: Path) -> "asyncio.Future[httpx2.Response]":
    """A call that is on its way, and stays so until there is a file `go`."""
    call = {"name": "hold", "arguments": {"folder": str(folder)}}
    first = asyncio.ensure_future(post(id=number, method="tools/call", params=call))
    while not (folder / "begun").exists():
        await asyncio.sleep(0.01)
    return first


def test_cancelled_and_hung_up_calls_leave_nothing_behind(server: HttpProcess) -> None:
    def descriptors() -> int:
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    async def round_of_calls() -> None:
        async with _greeted(server) as post:
            calls = [asyncio.ensure_future(post(id=number, **_read())) for number in range(20)]
            for number in (3, 7, "nobody", None, [], {}):
                await post(method="notifications/cancelled", params={"requestId": number})
            for number in range(0, 20, 4):
                calls[number].cancel()
            await asyncio.gather(*calls[1:3], return_exceptions=True)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(round_of_calls())
    before = descriptors()
    for _ in range(5):
        asyncio.run(round_of_calls())
    until = time.monotonic() + PATIENCE
    while descriptors() > before and time.monotonic() < until:
        time.sleep(0.01)  # connections that were hung up are closed a moment later
    assert descriptors() <= before
