"""A call that waits because its client cannot ask is told on the desktop, by both servers."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from http_process import PATIENCE, HttpProcess, environment

from handrail.settings import Settings

_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-to-your-agent.md"
_WITH_PROGRAMS = (
    "import sys; from handrail.process import desktop; desktop.FOLDERS = (sys.argv.pop(1),); "
    "from handrail.cli.main import run; sys.exit(run(sys.argv[1:]))"
)
_WRITE = {"path": "a.txt", "content": "a\n"}


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """How handrail is started on a desktop whose program for messages writes down what it is called with."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "notify-send"
    program.write_text(f'#!/bin/sh\ncd {tmp_path}\nprintf "%s\\n" "$@" >new\nmv new told\n')
    program.chmod(0o755)
    return [sys.executable, "-c", _WITH_PROGRAMS, str(programs), "mcp"]


def _on_a_desktop(folder: Path) -> dict[str, str]:
    return {**environment(folder), "DISPLAY": ":99", "HANDRAIL_NOTIFY": ""}


def _told(folder: Path) -> str:
    until = time.monotonic() + PATIENCE
    while not (folder / "told").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return (folder / "told").read_text()


@contextmanager
def _waiting_over_stdio(folder: Path, words: list[str]) -> Iterator[None]:
    (folder / "workspace").mkdir()
    command = [*words, "--workspace", str(folder / "workspace")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plain", "version": "1"}}
    with subprocess.Popen(command, env=_on_a_desktop(folder), **pipes) as server:  # type: ignore[call-overload]
        for message in (
            {"id": 1, "method": "initialize", "params": info},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "write", "arguments": _WRITE}},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()
        yield
        server.stdin.close()
        server.stdout.read()
    assert server.returncode == 0


@contextmanager
def _waiting_over_http(folder: Path, words: list[str]) -> Iterator[None]:
    with HttpProcess(folder, words=[*words, "--http", "127.0.0.1:0"], variables=_on_a_desktop(folder)) as server:

        async def call() -> None:
            async with server.client("legacy") as client:
                waits = asyncio.ensure_future(client.call_tool("write", _WRITE))
                await asyncio.to_thread(_told, folder)
                waits.cancel()

        asyncio.run(call())
        yield
        assert server.stop() == 0


@pytest.mark.parametrize("waiting", [_waiting_over_stdio, _waiting_over_http])
def test_a_call_that_waits_is_told_on_the_desktop(tmp_path: Path, words: list[str], waiting: object) -> None:
    with waiting(tmp_path, words):  # type: ignore[operator]
        told = _told(tmp_path)
    assert "handrail waits for your answer" in told
    assert "a.txt" in told
    assert "handrail approvals" in told


def test_a_client_is_kept_waiting_for_as_long_as_it_is_said() -> None:
    assert Settings().mcp.permission_wait == "10s"
    assert "the call waits 10 s" in _PAGE.read_text()
