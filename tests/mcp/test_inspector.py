"""The protocol's Inspector, by its command line, against both of our servers."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from http_process import HttpProcess, environment

import oracles

Inspect = Callable[..., Any]
EIGHT = ["read", "write", "edit", "find", "grep", "ls", "exec", "process"]


@pytest.fixture
def inspect(packages: oracles.Packages, tmp_path: Path) -> Inspect:
    """What the Inspector prints about a server, as JSON."""

    def run(target: list[str], *options: str) -> Any:
        words = [*packages.inspector, "--cli", *target, "--format", "json", "--connect-timeout", "60000", *options]
        told = {**environment(tmp_path), "PATH": oracles.environment()["PATH"]}
        done = subprocess.run(words, env=told, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    return run


def _looks_right(inspect: Inspect, target: list[str], *options: str) -> None:
    listed = inspect(target, *options, "--method", "tools/list", "--strict")
    assert [one["name"] for one in listed["result"]["tools"]] == EIGHT
    arguments = json.dumps({"path": "a.txt"})
    called = inspect(target, *options, "--method", "tools/call", "--tool-name", "read", "--tool-args-json", arguments)
    assert called["result"]["content"] == [{"type": "text", "text": "grüße\n"}]
    assert called["result"]["structuredContent"]["ok"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_lists_and_calls_over_stdio(inspect: Inspect, tmp_path: Path, era: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("grüße\n")
    server = [sys.executable, "-m", "handrail", "mcp", "--workspace", str(workspace)]
    passed_on = [word for pair in environment(tmp_path).items() for word in ("-e", "=".join(pair))]
    _looks_right(inspect, [*passed_on, *server], "--protocol-era", era)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_lists_and_calls_over_http_with_the_token(inspect: Inspect, tmp_path: Path, era: str) -> None:
    with HttpProcess(tmp_path) as server:
        (server.workspace / "a.txt").write_text("grüße\n")
        header = f"Authorization: {server.headers['Authorization']}"
        _looks_right(
            inspect, ["--server-url", server.url, "--transport", "http"], "--header", header, "--protocol-era", era
        )
