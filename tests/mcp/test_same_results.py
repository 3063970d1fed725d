"""The same calls give the same results, whichever way they come: in process, over stdio or over HTTP, in both eras."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from http_process import PATIENCE, HttpProcess, environment
from mcp.client import Client
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ElicitRequestParams, ElicitResult
from suite_tools import PIXEL

from handrail import Answer, Handrail, PermissionRequest
from handrail.protocol.results import render_for_model as told_of
from handrail.settings import load

Call = tuple[str, dict[str, Any]]
Told = tuple[str, list[tuple[str, str]], dict[str, Any]]

CALLS: list[Call] = [
    ("write", {"path": "grüße 🚀.txt", "content": "eins\nzwei\ndrei 漢字\n"}),
    ("read", {"path": "grüße 🚀.txt"}),
    ("read", {"path": "grüße 🚀.txt", "offset": 2, "limit": 1}),
    ("edit", {"path": "grüße 🚀.txt", "oldText": "zwei", "newText": "2\u2028"}),
    ("edit", {"path": "grüße 🚀.txt", "oldText": "vier", "newText": "4"}),
    ("ls", {"path": "."}),
    ("find", {"pattern": "*.txt"}),
    ("grep", {"pattern": "drei"}),
    ("grep", {"pattern": "nirgends"}),
    ("exec", {"command": "echo out; echo err >&2; exit 3"}),
    ("exec", {"command": "seq 1 60000"}),
    ("process", {"action": "list"}),
    ("read", {"path": "pixel.png"}),
    ("read", {"path": "missing.txt"}),
    ("read", {"path": "../outside.txt"}),
    ("read", {"path": 3, "more": []}),
    ("write", {"path": "a/b/c.txt", "content": ""}),
    ("write", {"path": ".git/config", "content": "x"}),
    ("exec", {"command": "git push --force"}),
    ("exec", {"command": "git push origin allowed"}),
    ("exec", {"command": "rm -rf /"}),
    ("edit", {}),
]
_ALLOWED = "allowed"
"""The person says yes to what names it, and no to all else."""
_OF_THE_MOMENT = {"tool_call_id", "duration_ms", "durationMs", "mtime"}
_IDS = re.compile(r"(call|ask|s|ps)[-_][0-9a-f-]{12,}|\d{4}-\d\d-\d\dT[\d:.+Z-]+")


def _same(value: Any, workspace: Path) -> Any:
    """What is left when ids, times and places are taken out."""
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if key not in _OF_THE_MOMENT}
        return {key: _same(one, workspace) for key, one in kept.items()}
    if isinstance(value, list | tuple):
        return [_same(one, workspace) for one in value]
    if isinstance(value, str):
        return _IDS.sub("…", value.replace(str(workspace.parent), "…"))
    return value


def _prepared(folder: Path) -> Path:
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "pixel.png").write_bytes(PIXEL)
    (workspace / ".git").mkdir()
    return workspace


def _in_process(folder: Path) -> list[Told]:
    """What the library itself gives: the yardstick."""
    workspace = _prepared(folder)

    def person(request: PermissionRequest) -> Answer:
        return Answer(kind="once" if _ALLOWED in str(request) else "deny")

    told: list[Told] = []
    loaded = load(environment(folder), {"mode": "auto"}, str(workspace), state=str(folder / "state"))
    options: dict[str, Any] = {"state_dir": folder / "state", "settings": loaded, "session": "s"}
    with Handrail(workspace, on_permission=person, **options) as rail:
        for name, arguments in CALLS:
            result = rail.call(name, arguments)
            pictures = [(one.mime, one.content) for one in result.attachments if one.content]
            whole = msgspec.to_builtins(result)
            whole["attachments"] = [{**one, "content": None} for one in whole["attachments"]]
            told.append((told_of(result), pictures, whole))
    return [_same(one, workspace) for one in told]


async def _person(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    if _ALLOWED in params.message:
        return ElicitResult(action="accept", content={"answer": "once"})
    return ElicitResult(action="decline")


@asynccontextmanager
async def _client(way: str, era: str, folder: Path) -> AsyncIterator[Client]:
    _prepared(folder)
    if way == "http":
        with HttpProcess(folder, "--mode", "auto") as server:
            async with server.client(era, elicitation_callback=_person) as client:
                yield client
        return
    words = ["-m", "handrail", "mcp", "--mode", "auto", "--workspace", str(folder / "workspace")]
    parameters = StdioServerParameters(command=sys.executable, args=words, env=environment(folder))
    async with Client(stdio_client(parameters), mode=era, elicitation_callback=_person) as client:
        yield client


async def _by_client(way: str, era: str, folder: Path) -> list[Told]:
    told: list[Told] = []
    async with asyncio.timeout(PATIENCE * 2), _client(way, era, folder) as client:
        for name, arguments in CALLS:
            done = await client.call_tool(name, arguments)
            text, *pictures = done.content
            assert done.is_error is not done.structured_content["ok"]
            told.append((text.text, [(one.mime_type, one.data) for one in pictures], done.structured_content))
    return [_same(one, folder / "workspace") for one in told]


@pytest.fixture(scope="module")
def yardstick(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    return _in_process(tmp_path_factory.mktemp("in-process"))


def test_the_calls_are_of_every_kind(yardstick: list[Told]) -> None:
    results = [whole for _, _, whole in yardstick]
    assert {one["name"] for one in results} == {"read", "write", "edit", "find", "grep", "ls", "exec", "process"}
    codes = {one["error"]["code"] for one in results if one["error"]}
    assert codes >= {"NOT_FOUND", "INVALID_ARGUMENT", "PERMISSION_DENIED", "POLICY_DENIED"}
    assert any(one["meta"].get("output") for one in results), "nothing was too large"
    assert any(pictures for _, pictures, _ in yardstick), "there was no picture"


@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_results_are_the_same_as_in_process(yardstick: list[Told], tmp_path: Path, way: str, era: str) -> None:
    for call, expected, told in zip(CALLS, yardstick, asyncio.run(_by_client(way, era, tmp_path)), strict=True):
        assert told == expected, call
