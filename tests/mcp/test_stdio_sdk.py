"""The official client over stdio, with a handshake and without."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import validate
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent
from stdio_process import environment

ERAS = ("legacy", "2026-07-28", "auto")
EIGHT = ["read", "write", "edit", "find", "grep", "ls", "exec", "process"]
pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")


@asynccontextmanager
async def connected(folder: Path, era: str, **options: Any) -> AsyncIterator[Client]:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    words = ["-m", "handrail", "mcp", "--workspace", str(workspace), "--mode", "full"]
    server = StdioServerParameters(command=sys.executable, args=words, env=environment(folder))
    async with Client(stdio_client(server), mode=era, **options) as client:  # type: ignore[arg-type]
        yield client


def run(work: Callable[[], Awaitable[None]]) -> None:
    anyio.run(work)


@pytest.mark.parametrize("era", ERAS)
def test_tools_are_listed_and_called_and_say_what_they_promised(tmp_path: Path, era: str) -> None:
    async def work() -> None:
        async with connected(tmp_path, era) as client:
            assert client.protocol_version == ("2025-11-25" if era == "legacy" else "2026-07-28")
            if era != "2026-07-28":  # who knows the version beforehand does not ask what it is like
                assert "workspace" in (client.instructions or "")
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == EIGHT
            promised = {tool.name: tool.output_schema for tool in listed}
            for name, given, ok in (
                ("write", {"path": "a.txt", "content": "one\n"}, True),
                ("read", {"path": "a.txt"}, True),
                ("edit", {"path": "a.txt", "oldText": "one", "newText": "two"}, True),
                ("find", {"pattern": "*.txt"}, True),
                ("grep", {"pattern": "two"}, True),
                ("ls", {"path": "."}, True),
                ("exec", {"command": "cat a.txt"}, True),
                ("process", {"action": "list"}, True),
                ("read", {"path": "nothing"}, False),
                ("exec", {"command": "exit 3"}, True),
                ("read", {"wrong": 1}, False),
            ):
                result = await client.call_tool(name, given)
                assert (result.is_error, result.structured_content["ok"]) == (not ok, ok), result
                validate(result.structured_content, promised[name])
                assert isinstance(result.content[0], TextContent)
                assert result.content[0].text == result.structured_content["content"]

    run(work)


@pytest.mark.parametrize("era", ERAS[:2])
def test_a_tool_that_is_not_there_is_an_error(tmp_path: Path, era: str) -> None:
    async def work() -> None:
        async with connected(tmp_path, era) as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("nope", {})
            assert caught.value.error.code == -32602
            assert (await client.call_tool("ls", {"path": "."})).is_error is False

    run(work)


@pytest.mark.parametrize("era", ERAS[:2])
def test_a_command_tells_how_far_it_is(tmp_path: Path, era: str) -> None:
    told: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        assert total is None
        told.append((done, message))

    async def work() -> None:
        async with connected(tmp_path, era) as client:
            command = "echo begun; while ! test -e done; do sleep 0.02; done"
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: client.call_tool("exec", {"command": command}, progress_callback=progress))
                with anyio.fail_after(30):
                    while not told:
                        await anyio.sleep(0.01)
                (tmp_path / "workspace" / "done").write_text("")
                group.cancel_scope.cancel()
            assert told[0] == (1.0, "begun")

    run(work)


@pytest.mark.parametrize("era", ERAS[:2])
def test_warnings_come_to_who_logs(tmp_path: Path, era: str) -> None:
    logged: list[Any] = []

    async def log(params: Any) -> None:
        logged.append(params)

    async def work() -> None:
        options: dict[str, Any] = {"logging_callback": log}
        if era != "legacy":
            options["log_level"] = "warning"
        async with connected(tmp_path, era, **options) as client:
            assert (await client.call_tool("read", {"path": "/etc/shadow"})).is_error
            with anyio.fail_after(30):
                while not logged:
                    await anyio.sleep(0.01)
        assert (logged[0].level, logged[0].data["code"]) == ("warning", "OUTSIDE_WORKSPACE")

    run(work)


@pytest.mark.parametrize("era", ERAS[:2])
def test_a_call_that_is_given_up_ends_and_the_next_goes_on(tmp_path: Path, era: str) -> None:
    begun: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        begun.append(done)

    async def work() -> None:
        async with connected(tmp_path, era) as client:
            async with anyio.create_task_group() as group:
                command = {"command": "echo begun; sleep 600"}
                group.start_soon(lambda: client.call_tool("exec", command, progress_callback=progress))
                with anyio.fail_after(30):
                    while not begun:
                        await anyio.sleep(0.01)
                group.cancel_scope.cancel()
            with anyio.fail_after(30):  # the session's calls take turns: this one runs when that is gone
                assert (await client.call_tool("exec", {"command": "echo on"})).is_error is False

    run(work)


def test_the_client_is_asked_for_its_roots(tmp_path: Path) -> None:
    from mcp.types import ListRootsResult, Root

    (tmp_path / "other").mkdir()
    logged: list[Any] = []

    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=f"file://{tmp_path}/other")])  # type: ignore[arg-type]

    async def log(params: Any) -> None:
        logged.append(params.data["text"])

    async def work() -> None:
        async with connected(tmp_path, "legacy", list_roots_callback=roots, logging_callback=log) as client:
            await client.list_tools()
            with anyio.fail_after(30):
                while not logged:
                    await anyio.sleep(0.01)
        assert "paths.client_roots" in logged[0]

    run(work)
