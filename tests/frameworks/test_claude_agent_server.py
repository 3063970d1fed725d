"""The server for the Claude Agent SDK: what its callback decides, and what Claude Code gets from it."""

import asyncio
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from claude_agent_sdk.types import PermissionResultAllow, PermissionResultDeny, ToolPermissionContext
from mcp import Client
from provider import Provider
from test_examples import LINES, check_prompts, check_results, start
from tests import oracles

from handrail import Handrail
from handrail.frameworks.claude_agent_sdk import SessionServer, build_options

APPEND = {"command": "echo ran >>runs"}


async def call(server: SessionServer, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """Calls a tool through the SDK's server object."""
    async with Client(server.config["instance"]) as client:
        result: Any = await client.call_tool(name, arguments)
    return result.content[0].text, bool(result.is_error)


def context(key: str) -> ToolPermissionContext:
    return ToolPermissionContext(tool_use_id=key)


def test_the_callback_asks_with_the_preview_and_the_tool_returns_what_it_committed(
    rail: Handrail, workspace: Path
) -> None:
    asked: list[str | None] = []

    async def approve(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> Any:
        assert (name, arguments) == ("mcp__handrail__exec", APPEND)
        asked.append(context.description)
        return PermissionResultAllow()

    async def play() -> None:
        server = SessionServer(rail, approve)
        allowed = await server.can_use_tool("mcp__handrail__exec", APPEND, context("toolu_1"))
        assert allowed == PermissionResultAllow(updated_input=APPEND)
        assert (workspace / "runs").read_text() == "ran\n"
        text, is_error = await call(server, "exec", APPEND)
        assert ("changed 1 file" in text, is_error) == (True, False)

    asyncio.run(play())
    [shown] = asked
    assert "adds runs" in str(shown)
    assert (workspace / "runs").read_text() == "ran\n", "the command did not run again"


def test_a_denial_reaches_handrail_and_claude_code(rail: Handrail, workspace: Path) -> None:
    async def deny(*_: Any) -> Any:
        return PermissionResultDeny(message="not now")

    async def play() -> None:
        server = SessionServer(rail, deny)
        denied = await server.can_use_tool("mcp__handrail__exec", APPEND, context("toolu_1"))
        assert denied == PermissionResultDeny(message="not now")
        text, is_error = await call(server, "exec", APPEND)  # a client that does not ask first
        assert (text, is_error) == ("not now", True)

    asyncio.run(play())
    assert rail.waiting() == ()
    assert not (workspace / "runs").exists()


def test_reads_need_no_person_and_errors_are_marked(rail: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")

    async def play() -> None:
        server = SessionServer(rail)
        for path in ("a.txt", "none"):
            decision = await server.can_use_tool("mcp__handrail__read", {"path": path}, context(path))
            assert isinstance(decision, PermissionResultAllow)
        assert await call(server, "read", {"path": "a.txt"}) == ("one\n", False)
        assert (await call(server, "read", {"path": "none"}))[1]
        (workspace / "a.txt").write_text("two\n")
        assert await call(server, "read", {"path": "a.txt"}) == ("two\n", False), "each result is given once"

    asyncio.run(play())


def test_a_result_that_no_tool_returned_is_not_the_answer_to_a_later_call(
    rail: Handrail, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a.txt").write_text("old\n")

    async def play() -> None:
        server = SessionServer(rail)
        await server.can_use_tool("mcp__handrail__read", {"path": "a.txt"}, context("toolu_1"))
        (workspace / "a.txt").write_text("new\n")
        later = monotonic() + 60
        monkeypatch.setattr("handrail.frameworks.claude_agent_sdk.monotonic", lambda: later, raising=False)
        assert await call(server, "read", {"path": "a.txt"}) == ("new\n", False)

    asyncio.run(play())


def test_without_a_callback_a_call_stays_parked_and_other_tools_are_denied(rail: Handrail, workspace: Path) -> None:
    async def play() -> None:
        server = SessionServer(rail)
        await server.can_use_tool("mcp__handrail__exec", APPEND, context("toolu_1"))
        text, is_error = await call(server, "exec", APPEND)
        assert ("needs permission" in text, is_error) == (True, True)
        assert isinstance(await server.can_use_tool("Bash", {}, context("toolu_2")), PermissionResultDeny)

    asyncio.run(play())
    assert len(rail.waiting()) == 1
    assert not (workspace / "runs").exists()


def test_the_options_have_no_other_tools_unless_the_program_chooses_some(rail: Handrail) -> None:
    options = build_options(rail, setting_sources=[])
    assert (options.tools, list(options.mcp_servers)) == ([], ["handrail"])  # pyright: ignore
    assert build_options(rail, tools=["Task"]).tools == ["Task"]


def test_the_example_works_with_claude_code_itself(
    tmp_path: Path, provide: Callable[..., Provider], deep: bool
) -> None:
    if not deep or sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("in a deep run, on Linux for x86-64: Claude Code is a program of 230 MB")
    try:
        packages = oracles.installed(oracles.HOSTS)
    except oracles.NotReachableError as unreachable:
        pytest.skip(f"the npm registry cannot be reached: {unreachable}")
    provider = provide(*LINES)
    provider.prefix = "mcp__handrail__"
    program = packages.modules / "@anthropic-ai/claude-code-linux-x64/claude"
    quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE": str(program)}
    shown = start("claude_agent", tmp_path, provider.environment | quiet)
    check_prompts(shown)
    check_results(provider.results)
    assert "Done." in shown
    offered = {one["name"] for one in provider.received[-1].body["tools"]}
    assert "mcp__handrail__exec" in offered
    assert not offered & {"Bash", "Edit", "Write", "Read"}
    assert json.dumps(sorted(offered)).count("mcp__handrail__") == 8
