"""The folders of a client over stdio: asked for, honoured as far as the user's settings say, and told of."""

import time
from pathlib import Path
from typing import Any

import pytest
from stdio_process import PATIENCE, Server, envelope

from handrail.mcp.protocol import parse_roots


def settings(folder: Path, text: str) -> None:
    file = folder / "home" / ".config" / "handrail" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def reply(server: Server, number: int, *folders: Path) -> None:
    """Answers the nth question for the roots."""
    server.until(lambda: sum(one.get("method") == "roots/list" for one in server.came) == number)
    asked = [one for one in server.came if one.get("method") == "roots/list"][-1]
    roots = [{"uri": folder.as_uri()} for folder in folders]
    server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}})


def reads(server: Server, path: Path, wanted: bool) -> bool:
    """Whether it comes to this: the answer about the roots is looked at by another thread."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if server.result(server.call("read", {"path": str(path)}))["isError"] is not wanted:
            return True
    return False


def test_a_root_that_the_settings_let_be_is_one_until_the_client_says_otherwise(tmp_path: Path) -> None:
    settings(tmp_path, '[paths]\nclient_roots = "read-only"\n')
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("there\n")
    with Server(tmp_path) as server:
        server.initialize(roots={"listChanged": True})
        reply(server, 1, server.workspace, other)
        assert reads(server, other / "a.txt", wanted=True)
        assert server.result(server.call("write", {"path": str(other / "b.txt"), "content": "x"}))["isError"]
        server.notify("notifications/roots/list_changed")
        reply(server, 2)
        assert reads(server, other / "a.txt", wanted=False)


def test_a_root_that_is_not_used_is_told_with_the_setting_that_would(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with Server(tmp_path) as server:
        server.initialize(roots={})
        reply(server, 1, other)
        assert server.asks("tools/list")["result"]["tools"]
        server.until(lambda: bool(server.told("notifications/message")))
        (told,) = server.told("notifications/message")
        assert str(other) in told["data"]["text"]
        assert "paths.client_roots" in told["data"]["text"]


def test_a_project_cannot_open_what_a_client_asks_for(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with Server(tmp_path) as server:
        (server.workspace / "handrail.toml").write_text('[paths]\nclient_roots = "writable"\n')
        server.initialize(roots={})
        reply(server, 1, other)
        assert server.asks("tools/list")["result"]["tools"]
        server.until(lambda: bool(server.told("notifications/message")))
        assert server.result(server.call("ls", {"path": str(other)}))["isError"]


@pytest.mark.parametrize(
    "said", [{"error": {"code": -32601, "message": "no"}}, {"result": {"roots": 5}}, {"result": 5}]
)
def test_a_client_that_does_not_answer_well_goes_on_without_roots(tmp_path: Path, said: dict[str, Any]) -> None:
    with Server(tmp_path) as server:
        server.initialize(roots={})
        asked = server.sees(lambda message: message.get("method") == "roots/list")
        server.send({"jsonrpc": "2.0", "id": asked["id"], **said})
        assert server.asks("tools/list")["result"]["tools"]
    assert server.errors == b""


def test_who_has_no_roots_or_no_handshake_is_not_asked(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        server.initialize()
        server.notify("notifications/roots/list_changed")
        assert server.asks("ping")["result"] == {}
        assert not server.told("roots/list")
    with Server(tmp_path) as server:
        meta = {**envelope(), "io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
        assert server.asks("tools/list", {"_meta": meta})["result"]["tools"]
        server.notify("notifications/initialized")
        server.notify("notifications/roots/list_changed")
        assert "result" in server.asks("tools/list", {"_meta": meta})
        assert not server.told("roots/list")


@pytest.mark.parametrize(
    ("uri", "folders"),
    [
        ("file:///a/b", ("/a/b",)),
        ("file://localhost/a%20b", ("/a b",)),
        ("file:///a%00b", ()),
        ("file://elsewhere/a", ()),
        ("file:a", ()),
        ("file:///a#b", ()),
        ("file:///a?b", ()),
        ("file:///a%23b%3Fc", ("/a#b?c",)),
        ("https://example.org/a", ()),
        ("file://[", ()),
        ("", ()),
        (5, ()),
        (None, ()),
    ],
)
def test_only_folders_of_this_machine_are_roots(uri: object, folders: tuple[str, ...]) -> None:
    assert parse_roots({"roots": [{"uri": uri}, 5]}) == folders
