"""What the server over stdio says to whatever a client says."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stdio_process import MODERN, PATIENCE, Server, envelope

KEY = "io.modelcontextprotocol/"


@pytest.fixture(scope="module")
def greeted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that was greeted, for tests that leave nothing behind."""
    with Server(tmp_path_factory.mktemp("greeted")) as server:
        server.initialize()
        yield server


@pytest.fixture(scope="module")
def modern(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same for a client without a handshake."""
    with Server(tmp_path_factory.mktemp("modern")) as server:
        server.asks("server/discover", {"_meta": envelope()})
        yield server


# The handshake


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("of tomorrow", "2025-11-25"),
    ],
)
def test_a_version_with_a_handshake_is_spoken_and_any_other_comes_to_the_latest(
    tmp_path: Path, asked: str, spoken: str
) -> None:
    with Server(tmp_path) as server:
        told = server.initialize(asked)
        assert told["protocolVersion"] == spoken
        assert told["capabilities"] == {"tools": {"listChanged": True}, "logging": {}}
        assert told["serverInfo"]["name"] == "handrail"
        assert "PERMISSION_REQUIRED" in told["instructions"]
        assert "resultType" not in told


def test_before_it_is_greeted_a_server_answers_pings_and_nothing_else_of_that_era(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        assert server.asks("ping")["result"] == {}
        assert server.asks("nothing/known")["error"]["code"] == -32601
        for method in ("tools/list", "tools/call", "logging/setLevel"):
            refused = server.asks(method)["error"]
            assert refused["code"] == -32602
            assert "initialize first" in refused["message"]
        assert not (tmp_path / "state").exists(), "no session was opened"
        server.initialize()
        assert server.asks("tools/list")["result"]["tools"]
        again = server.asks("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})
        assert again["error"]["code"] == -32600


def test_everything_that_is_wrong_with_a_request_is_told_in_one_sentence(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        wrong = server.asks("initialize", {"protocolVersion": 3, "clientInfo": {"name": "x", "version": None}})
        assert wrong["error"] == {
            "code": -32602,
            "message": "initialize: protocolVersion has to be a text; capabilities is missing: an object; "
            "clientInfo.version is missing: a text.",
        }
        server.initialize()


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("tools/call", {"arguments": []}, "name is missing: a text; arguments has to be an object"),
        ("tools/call", {"name": "read", "_meta": {"progressToken": 1.5}}, "_meta.progressToken has to be a text or"),
        ("tools/call", {"name": "read", "_meta": 5}, "_meta has to be an object"),
        ("tools/list", {"cursor": "2"}, "cursor has to be a cursor from this server"),
        ("tools/list", {"cursor": 2}, "cursor has to be a text"),
        ("logging/setLevel", {"level": "loud"}, "level has to be one of debug, info"),
        ("logging/setLevel", {}, "level is missing"),
    ],
)
def test_params_that_are_wrong_are_refused(greeted: Server, method: str, params: dict[str, Any], words: str) -> None:
    error = greeted.asks(method, params)["error"]
    assert error["code"] == -32602
    assert words in error["message"]


@pytest.mark.parametrize(
    "method", ["prompts/list", "resources/list", "server/discover", "subscriptions/listen", "tasks/get", ""]
)
def test_what_is_not_there_is_said_not_to_be(greeted: Server, method: str) -> None:
    assert greeted.asks(method)["error"]["code"] == -32601


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(greeted: Server) -> None:
    error = greeted.asks("tools/call", {"name": "nope"})["error"]
    assert (error["code"], error["message"]) == (-32602, "Unknown Agent tool: nope")
    assert "read" in error["data"]["tools"]
    error = greeted.asks("tools/call", {"name": "exce"})["error"]
    assert error["message"] == "Unknown Agent tool: exce. Did you mean exec?"


def test_arguments_that_are_wrong_are_a_result_that_the_model_can_read(greeted: Server) -> None:
    result = greeted.asks("tools/call", {"name": "read", "arguments": {"pth": "a"}})["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["error"]["code"] == "INVALID_ARGUMENT"


def test_notifications_are_never_answered(greeted: Server) -> None:
    before = len(greeted.came)
    for method in ("notifications/cancelled", "notifications/unknown", "tools/list", "notifications/progress"):
        greeted.notify(method, requestId="of nobody")
    greeted.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []})
    assert greeted.asks("ping")["result"] == {}
    assert len(greeted.came) == before + 1


def test_answers_to_what_was_never_asked_are_passed_over(greeted: Server) -> None:
    before = len(greeted.came)
    for reply in ({"result": {}}, {"error": {"code": 1, "message": "x"}}, {"result": 5}):
        greeted.send({"jsonrpc": "2.0", "id": 77, **reply})
    assert greeted.asks("ping")["result"] == {}
    assert len(greeted.came) == before + 1


# Frames


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"nonsense", -32700, None),
        (b"{", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"5", -32600, None),
        (b'"ping"', -32600, None),
        (b"null", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', -32600, "a"),
        (b'{"id":"b","method":"ping"}', -32600, "b"),
        (b'{"jsonrpc":"2.0","id":"c","method":5}', -32600, "c"),
        (b'{"jsonrpc":"2.0","id":"d"}', -32600, "d"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":"' + b"x" * 2_000 + b'","method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":"e","method":"ping","params":[]}', -32602, "e"),
    ],
)
def test_what_is_no_message_is_answered_as_such(
    greeted: Server, line: bytes, code: int, request_id: str | None
) -> None:
    before = len(greeted.came)
    greeted.write(line + b"\n")
    assert greeted.asks("ping")["result"] == {}
    (answer,) = [message for message in greeted.came[before:-1] if "id" in message]
    assert (answer["error"]["code"], answer["id"]) == (code, request_id)


def test_blank_lines_and_other_line_ends_are_no_messages(greeted: Server) -> None:
    before = len(greeted.came)
    greeted.write(b"\n\r\n  \n")
    greeted.write(b'{"jsonrpc":"2.0","id":"windows","method":"ping"}\r\n')
    assert greeted.result("windows") == {}
    assert len(greeted.came) == before + 1


def test_a_frame_that_is_too_long_is_skipped_and_the_next_is_read(greeted: Server) -> None:
    before = len(greeted.came)
    memory = _peak(greeted)
    greeted.write(b'{"jsonrpc":"2.0","id":"long","method":"')
    for _ in range(80):
        greeted.write(b"x" * (1 << 20))
    greeted.write(b'"}\n')
    assert greeted.asks("ping")["result"] == {}
    (answer,) = [message for message in greeted.came[before:-1] if "id" in message]
    assert (answer["error"]["code"], answer["id"]) == (-32600, None)
    assert "64 MiB" in answer["error"]["message"]
    assert _peak(greeted) - memory < 100 << 20, "it kept no more than a frame may have, and not twice"


def test_a_large_file_can_be_written(greeted: Server) -> None:
    content = "0123456789abcde\n" * (1 << 18)
    result = greeted.asks("tools/call", {"name": "write", "arguments": {"path": "large.txt", "content": content}})
    assert result["result"]["isError"] is False
    assert (greeted.workspace / "large.txt").stat().st_size == 4 << 20


def test_ids_come_back_as_they_were(greeted: Server) -> None:
    for request_id in (0, -1, (1 << 63) - 1, "", "7", "an id with ünïcode and \n"):
        greeted.send({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
        assert type(greeted.answer(request_id)["id"]) is type(request_id)


# Without a handshake


def test_a_server_says_what_it_speaks(modern: Server) -> None:
    found = modern.asks("server/discover", {"_meta": envelope()})["result"]
    assert found["supportedVersions"] == [MODERN]
    assert found["capabilities"] == {"tools": {"listChanged": True}, "logging": {}}
    assert (found["resultType"], found["cacheScope"]) == ("complete", "private")
    assert found["ttlMs"] >= 0
    assert found["_meta"][f"{KEY}serverInfo"]["name"] == "handrail"
    assert "PERMISSION_REQUIRED" in found["instructions"]


def test_every_result_says_what_it_is_and_whose(modern: Server) -> None:
    listed = modern.asks("tools/list", {"_meta": envelope()})["result"]
    called = modern.asks("tools/call", {"name": "ls", "arguments": {"path": "."}, "_meta": envelope()})["result"]
    failed = modern.asks("tools/call", {"name": "read", "arguments": {"path": "no"}, "_meta": envelope()})["result"]
    assert (listed["ttlMs"] >= 0, listed["cacheScope"]) == (True, "private")
    for result in (listed, called, failed):
        assert result["resultType"] == "complete"
        assert result["_meta"][f"{KEY}serverInfo"]["version"]


def test_another_version_is_refused_with_those_that_there_are(modern: Server) -> None:
    for version in ("2025-11-25", "2099-01-01"):
        error = modern.asks("tools/list", {"_meta": {**envelope(), f"{KEY}protocolVersion": version}})["error"]
        assert (error["code"], error["data"]) == (-32022, {"supported": [MODERN], "requested": version})


def test_a_request_that_says_half_of_what_it_should_is_told_the_rest(modern: Server) -> None:
    meta = {f"{KEY}protocolVersion": MODERN, f"{KEY}clientInfo": "me", f"{KEY}logLevel": "loud"}
    error = modern.asks("tools/list", {"_meta": meta})["error"]
    assert error["code"] == -32602
    assert f"_meta.{KEY}clientCapabilities is missing" in error["message"]
    assert f"_meta.{KEY}clientInfo has to be an object" in error["message"]
    assert f"_meta.{KEY}logLevel has to be one of" in error["message"]


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "roots/list"])
def test_what_this_version_left_behind_is_not_there(modern: Server, method: str) -> None:
    assert modern.asks(method, {"_meta": envelope()})["error"]["code"] == -32601


def test_a_connection_stays_what_it_is(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    with Server(tmp_path) as server:
        assert "result" in server.asks("tools/list", {"_meta": envelope()})
        assert server.asks("initialize", hello)["error"]["code"] == -32022
        assert server.asks("tools/list")["error"]["code"] == -32602
    with Server(tmp_path) as server:
        assert "result" in server.asks("server/discover", {"_meta": envelope()}), "it only finds out"
        assert "result" in server.asks("initialize", hello)
        assert server.asks("tools/list", {"_meta": envelope()})["error"]["code"] == -32600


def test_who_listens_is_told_that_first_and_last(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["file:///a"]}
        number = server.request("subscriptions/listen", {"notifications": wanted, "_meta": envelope()})
        told = server.sees(lambda message: message.get("method") == "notifications/subscriptions/acknowledged")
        assert told["params"] == {
            "_meta": {f"{KEY}subscriptionId": number},
            "notifications": {"toolsListChanged": True},
        }
        left = server.request("subscriptions/listen", {"notifications": {}, "_meta": envelope()})
        server.notify("notifications/cancelled", requestId=left)
        assert "result" in server.asks("tools/list", {"_meta": envelope()})
        assert server.close() == 0
        assert server.result(number)["_meta"][f"{KEY}subscriptionId"] == number
        assert not [message for message in server.came if message.get("id") == left]


def _peak(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) << 10


def test_nothing_but_messages_comes_over_stdout(greeted: Server, modern: Server) -> None:
    for server in (greeted, modern):
        assert all(message["jsonrpc"] == "2.0" for message in server.came)
        assert json.dumps(server.came)


def test_the_server_loads_none_of_what_it_does_without() -> None:
    """Each of these takes longer to load than all of the server."""
    modules = "handrail.cli.commands.mcp, handrail.api, handrail.mcp.stdio.server, handrail.mcp.stdio.call_runner"
    heavy = {"asyncio", "mcp", "mcp_types", "pydantic", "anyio", "acp"}
    program = f"import sys, {modules}; print(*sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", program], timeout=PATIENCE) == b"\n"
