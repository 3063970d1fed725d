"""The session that a client works in, and what it is told where there is none."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdio_process import Server, envelope

from handrail.mcp.protocol import Caller
from handrail.mcp.sessions import build_session_name
from handrail.protocol.records import check_session_id as checked_name


def sessions(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in (folder / "state").glob("workspaces/*/*/journal.db"))


def test_a_client_comes_back_to_its_own_session(tmp_path: Path) -> None:
    for _ in range(2):
        with Server(tmp_path) as server:
            server.initialize(name="Claude Code")
            assert server.asks("tools/list")["result"]["tools"]
    with Server(tmp_path) as server:
        meta = {**envelope(), "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "9"}}
        assert server.asks("tools/list", {"_meta": meta})["result"]["tools"]
    assert sessions(tmp_path) == ["mcp-claude-code"]


def test_what_an_earlier_conversation_read_does_not_count_for_a_new_one(tmp_path: Path) -> None:
    def read_a(server: Server) -> bool:
        (server.workspace / "a.txt").write_text("one\n")
        server.initialize(name="Claude Code")
        return server.result(server.call("read", {"path": "a.txt"}))["isError"]

    def write_a(server: Server) -> str:
        (server.workspace / "a.txt").write_text("somebody else's\n")
        written = server.result(server.call("write", {"path": "a.txt", "content": "two\n"}))["structuredContent"]
        return "" if written["ok"] else written["error"]["code"]

    with Server(tmp_path) as server:
        assert not read_a(server)
        assert write_a(server) == "STALE_FILE"
    with Server(tmp_path) as server:
        server.initialize(name="Claude Code")
        assert write_a(server) == ""
    assert sessions(tmp_path) == ["mcp-claude-code"]


def test_two_windows_have_a_session_each_and_the_first_is_free_again(tmp_path: Path) -> None:
    with Server(tmp_path) as one, Server(tmp_path) as other:
        for server in (one, other):
            server.initialize(name="Zed")
            assert server.asks("tools/list")["result"]["tools"]
            assert server.asks("ping")["result"] == {}, "the session is opened behind the list, before anything else"
        assert sessions(tmp_path) == ["mcp-zed", "mcp-zed-2"]
        one.kill()
        with Server(tmp_path) as third:
            third.initialize(name="Zed")
            assert third.asks("tools/list")["result"]["tools"]
    assert sessions(tmp_path) == ["mcp-zed", "mcp-zed-2"]


def test_a_session_that_was_named_is_that_one(tmp_path: Path) -> None:
    with Server(tmp_path, "--session", "mine") as server:
        server.initialize(name="Zed")
        assert server.asks("tools/list")["result"]["tools"]
    assert sessions(tmp_path) == ["mine"]


@given(st.text(max_size=60))
def test_whatever_a_client_calls_itself_its_session_has_a_name(name: str) -> None:
    assert checked_name(f"{build_session_name(Caller(name=name))}-100")


@pytest.mark.parametrize(
    ("name", "session"), [("", "mcp"), ("—", "mcp"), ("Visual Studio  Code", "mcp-visual-studio-code")]
)
def test_a_session_is_called_after_its_client(name: str, session: str) -> None:
    assert build_session_name(Caller(name=name)) == session


def test_settings_that_are_wrong_are_told_to_the_client_and_to_stderr_until_they_are_mended(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".config" / "handrail" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[paths]\nclient_roots = 5\n")
    with Server(tmp_path) as server:
        server.initialize()
        for method, params in (("tools/list", {}), *[("tools/call", {"name": "ls", "arguments": {}})] * 3):
            error = server.asks(method, params)["error"]
            assert error["code"] == -32603
            assert "paths.client_roots is 5" in error["message"]
        file.write_text("")
        assert server.asks("tools/list")["result"]["tools"]
    assert server.errors.decode().count("paths.client_roots is 5") == 1, "the same thing is said once"
    assert sessions(tmp_path) == ["mcp-test-client"], "the name was given back each time"


def test_a_workspace_that_is_not_there_is_told_to_the_client(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        os.rmdir(server.workspace)
        server.initialize()
        error = server.asks("tools/list")["error"]
        assert error["code"] == -32603
        assert "workspace" in error["message"]
        server.workspace.mkdir()
        assert server.asks("tools/list")["result"]["tools"]


def test_nothing_is_said_on_stderr_where_nothing_is_wrong(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        server.initialize()
        assert server.result(server.call("ls", {"path": "."}))["isError"] is False
    assert server.errors == b""
