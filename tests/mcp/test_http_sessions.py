"""Over HTTP: which versions are spoken, which session a client works in, what it says of its folders."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_process import PATIENCE, TOKEN, HttpProcess, environment
from mcp.client.context import ClientRequestContext
from mcp_types import Implementation, ListRootsResult, Root

from handrail.cli.main import run as run_words

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
_ACCEPT = {"accept": "application/json, text/event-stream"}


def _sessions(folder: Path) -> set[str]:
    words = [sys.executable, "-m", "handrail", "log", "--sessions", "--json", "--workspace", str(folder / "workspace")]
    done = subprocess.run(words, env=environment(folder), capture_output=True, text=True, check=True)
    return {one["id"] for one in json.loads(done.stdout)["sessions"]}


def _named(name: str) -> Implementation:
    return Implementation(name=name, version="1")


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("2024-11-05", "2025-11-25"),
        ("2025-03-26", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ],
)
def test_versions_that_are_older_than_ours_are_not_offered(server: HttpProcess, asked: str, spoken: str) -> None:
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    with httpx2.Client(headers={**_ACCEPT, **server.headers}, timeout=PATIENCE) as web:
        answer = web.post(server.url, json=body)
        told = json.loads(answer.text.split("data: ", 1)[1])
        assert told["result"]["protocolVersion"] == spoken
        assert told["result"]["serverInfo"]["name"] == "handrail"
        assert told["result"]["capabilities"] == {"tools": {"listChanged": True}, "logging": {}}
        session = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": spoken}
        web.post(server.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
        listed = web.post(server.url, json={"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, headers=session)
        assert json.loads(listed.text.split("data: ", 1)[1])["result"]["tools"][0]["name"] == "read"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with HttpProcess(tmp_path_factory.mktemp("versions")) as one:
        yield one


def test_connections_of_one_client_share_a_session_that_is_named_after_it(tmp_path: Path) -> None:
    async def talk() -> None:
        async with (
            server.client("legacy", client_info=_named("Claude Code")) as one,
            server.client("auto", client_info=_named("claude-code")) as two,
            server.client("legacy", client_info=_named("Cursor")) as other,
        ):
            await one.call_tool("write", {"path": "a.txt", "content": "a\n"})
            # It knows the file as its other connection does; a stranger would have to read it first.
            changed = await two.call_tool("edit", {"path": "a.txt", "oldText": "a", "newText": "b"})
            assert not changed.is_error, changed
            await other.call_tool("read", {"path": "a.txt"})

    with HttpProcess(tmp_path, "--mode", "auto") as server:
        asyncio.run(talk())
        assert server.stop() == 0
    assert _sessions(tmp_path) == {"mcp-claude-code", "mcp-cursor"}


def test_what_one_connection_read_does_not_count_for_another(tmp_path: Path) -> None:
    async def talk(files: Path) -> None:
        async def write(client: Any, path: str) -> Any:
            written = await client.call_tool("write", {"path": path, "content": "mine\n"})
            return written.structured_content["error"] and written.structured_content["error"]["code"]

        async with server.client("legacy", client_info=_named("Cursor")) as one:
            for path in ("a.txt", "b.txt"):
                (files / path).write_text("old\n")
                assert not (await one.call_tool("read", {"path": path})).is_error
                (files / path).write_text("somebody else's\n")
            async with server.client("legacy", client_info=_named("Cursor")) as two:
                assert await write(two, "a.txt") is None
            assert await write(one, "b.txt") == "STALE_FILE"

    with HttpProcess(tmp_path, "--mode", "auto") as server:
        asyncio.run(talk(server.workspace))
    assert _sessions(tmp_path) == {"mcp-cursor"}


def test_a_session_that_is_in_use_elsewhere_is_left_alone(tmp_path: Path) -> None:
    async def talk(server: HttpProcess) -> None:
        async with server.client("legacy", client_info=_named("Cursor")) as client:
            await client.list_tools()

    with HttpProcess(tmp_path) as first, HttpProcess(tmp_path) as second:
        asyncio.run(talk(first))
        asyncio.run(talk(second))
    assert _sessions(tmp_path) == {"mcp-cursor", "mcp-cursor-2"}


def test_a_named_session_is_everybodys(tmp_path: Path) -> None:
    async def talk() -> None:
        async with (
            server.client("legacy", client_info=_named("a")) as a,
            server.client("auto", client_info=_named("b")) as b,
        ):
            await a.list_tools()
            await b.list_tools()

    with HttpProcess(tmp_path, "--session", "mine") as server:
        asyncio.run(talk())
    assert _sessions(tmp_path) == {"mine"}


def test_folders_of_the_client_are_asked_for_before_its_first_call_and_when_they_are_others(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.txt").write_text("from elsewhere\n")
    asked: list[int] = []

    async def roots(_: ClientRequestContext) -> ListRootsResult:
        asked.append(1)
        return ListRootsResult(roots=[Root(uri=elsewhere.as_uri())] if len(asked) == 1 else [])

    async def talk() -> list[Any]:
        async with server.client("legacy", list_roots_callback=roots) as client:
            path = {"path": str(elsewhere / "a.txt")}
            done = [await client.call_tool("read", path), await client.call_tool("read", path)]
            assert asked == [1], "as long as it does not say that they are others"
            await client.send_roots_list_changed()
            async with asyncio.timeout(PATIENCE):
                while not (await client.call_tool("read", path)).is_error:
                    await asyncio.sleep(0.01)
            return done

    home = Path(environment(tmp_path)["HOME"])
    (home / ".config" / "handrail").mkdir(parents=True)
    (home / ".config" / "handrail" / "config.toml").write_text('[paths]\nclient_roots = "read-only"\n')
    with HttpProcess(tmp_path) as server:
        done = asyncio.run(talk())
    assert [one.content[0].text for one in done] == ["from elsewhere\n"] * 2, server.said
    assert asked == [1, 1]


@pytest.mark.parametrize(
    ("words", "token", "said"),
    [
        (["--http", "0.0.0.0:7421"], "", "is not a loopback address"),
        (["--http", "7421"], "", "is not HOST:PORT;"),
        (["--http", ":0"], "short", "HANDRAIL_TOKEN needs at least 16 visible"),
        (["--http", ":0"], "with a space in the middle", "HANDRAIL_TOKEN needs at least 16 visible"),
    ],
)
def test_what_would_be_unsafe_is_refused_before_anything_listens(
    tmp_path: Path, words: list[str], token: str, said: str
) -> None:
    told = {**environment(tmp_path), "HANDRAIL_TOKEN": token}
    command = [sys.executable, "-m", "handrail", "mcp", *words, "--workspace", str(tmp_path)]
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_without_the_extra_it_is_said_what_to_install(tmp_path: Path) -> None:
    hidden = (
        "import sys, importlib.abc\n"
        "class Hide(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'mcp', 'uvicorn', 'anyio'}: raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        "from handrail.cli.main import run\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", hidden, "mcp", "--http", ":0", "--workspace", str(tmp_path)]
    told = environment(tmp_path)
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'handrail[mcp]'" in done.stderr


@pytest.mark.parametrize(
    ("words", "token", "said"),
    [
        (["--workspace", "/nowhere"], TOKEN, "the workspace /nowhere is not a folder. Nothing was started."),
        (["--workspace", "."], "short", "HANDRAIL_TOKEN needs at least 16 visible ASCII characters"),
    ],
)
def test_what_could_never_be_served_is_said_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words, token, said
) -> None:
    monkeypatch.setenv("HANDRAIL_TOKEN", token)
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    assert run_words(["mcp", "--http", "127.0.0.1:0", *words]) == 2
    assert said in capsys.readouterr().err
