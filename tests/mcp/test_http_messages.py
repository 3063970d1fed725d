"""What a client over HTTP is told besides its results: warnings, other tools, folders that are not used."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from http_process import PATIENCE, HttpProcess, environment
from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation, ListRootsResult, Root

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])
_OUTSIDE = {"path": "/etc/shadow"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    folder = tmp_path_factory.mktemp("news")
    settings = Path(environment(folder)["HOME"], ".config", "handrail")
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text('[tools]\nenable = ["skill_list", "skill_control"]\n')
    skill = folder / "workspace" / ".claude" / "skills" / "look"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: look\ndescription: Looks.\nallowed-tools: Read\n---\nLook.\n")
    with HttpProcess(folder, "--mode", "full") as one:
        yield one
        assert one.stop() == 0


async def _until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.01)


@ERAS
def test_warnings_are_told_from_the_level_on_that_was_asked_for(server: HttpProcess, era: str) -> None:
    async def heard_from(level: Any) -> list[tuple[str, str]]:
        logged: list[tuple[str, str]] = []

        async def log(params: Any) -> None:
            logged.append((params.level, params.data["code"]))

        # Without a handshake each request says it, with one a request of its own does.
        options = {"log_level": level} if era == "auto" else {}
        async with server.client(era, logging_callback=log, **options) as client:
            if era == "legacy":
                await client.set_logging_level(level)
            assert (await client.call_tool("read", _OUTSIDE)).is_error
        return logged

    assert asyncio.run(heard_from("warning")) == [("warning", "OUTSIDE_WORKSPACE")]
    assert asyncio.run(heard_from("error")) == []


@ERAS
def test_a_client_is_told_that_other_tools_are_offered(server: HttpProcess, era: str) -> None:
    changes: list[str] = []

    async def handle(message: Any) -> None:
        changes.append(type(message).__name__)

    async def listen(client: Any, begun: asyncio.Event) -> None:
        async with client.listen(tools_list_changed=True) as subscription:
            begun.set()
            async for change in subscription:
                changes.append(type(change).__name__)

    async def talk() -> None:
        info = Implementation(name=f"news {era}", version="1")
        heard = {"message_handler": handle} if era == "legacy" else {}
        async with server.client(era, client_info=info, **heard) as client:
            listening = None
            if era == "auto":
                begun = asyncio.Event()
                listening = asyncio.ensure_future(listen(client, begun))
                await asyncio.wait_for(begun.wait(), PATIENCE)
            before = {tool.name for tool in (await client.list_tools()).tools}
            assert not (await client.call_tool("ls", {"path": "."})).is_error
            assert changes == [], "nothing has changed"
            assert not (await client.call_tool("skill_control", {"name": "look", "action": "activate"})).is_error
            await _until(lambda: changes)
            after = {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
            assert {"exec", "write"} <= before - after
            if listening is not None:
                listening.cancel()

    asyncio.run(talk())
    assert len(changes) == 1


def test_a_folder_of_the_client_is_no_root_until_the_settings_say_so(server: HttpProcess, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("from elsewhere\n")
    logged: list[str] = []

    async def roots(_: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=tmp_path.as_uri())])

    async def log(params: Any) -> None:
        logged.append(params.data["text"])

    async def talk() -> None:
        async with server.client("legacy", list_roots_callback=roots, logging_callback=log) as client:
            refused = await client.call_tool("read", {"path": str(tmp_path / "a.txt")})
            assert refused.structured_content["error"]["code"] == "OUTSIDE_WORKSPACE"

    asyncio.run(talk())
    assert "paths.client_roots" in logged[0]


@ERAS
def test_a_tool_that_is_not_there_is_on_the_record(server: HttpProcess, era: str) -> None:
    async def talk() -> None:
        async with server.client(era) as client:
            with pytest.raises(MCPError, match=f"Unknown Agent tool: none_{era}"):
                await client.call_tool(f"none_{era}", {})

    asyncio.run(talk())
    audit = (server.workspace.parent / "state" / "audit.jsonl").read_text().splitlines()
    found = [one for one in map(json.loads, audit) if one["name"] == f"none_{era}"]
    assert [(one["ok"], one["error_code"]) for one in found] == [(False, "UNKNOWN_TOOL")]
