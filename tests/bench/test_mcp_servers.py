"""What MCP servers are measured with: the client, the plain server it asks, and the figures made of both."""

import json
import os
import sys
from pathlib import Path

import pytest
from bench.mcp import CALLS, HANDRAIL, cold, compared, in_turns, kept, prove, running, warm, without_first
from bench.mcp.client import Client
from bench.mcp.memory import Memory, memory_of
from bench.mcp.servers import HERE, STANDARD_LIBRARY, TEXT, Server
from bench.measure import Sample


@pytest.fixture
def server(tmp_path: Path) -> Server:
    (tmp_path / "sample.txt").write_text(TEXT)
    command = [sys.executable, str(HERE / "standard_library_server.py"), str(tmp_path)]
    return Server(command, os.environ, ("read", {"path": "sample.txt"}))


def test_the_client_has_the_tools_and_reads_a_file(server: Server) -> None:
    with Client(server.command, server.environment) as client:
        assert [tool["name"] for tool in json.loads(client.tools)["result"]["tools"]] == ["read"]
        assert client.begun < client.listed
        answer = client.call(*server.read)
        assert json.loads(answer.line)["result"]["content"] == [{"type": "text", "text": TEXT}]
        assert answer.seconds > 0


@pytest.mark.parametrize("path", ["missing.txt", "../outside.txt", "/etc/passwd"])
def test_the_plain_server_refuses_what_is_not_in_its_folder(server: Server, path: str) -> None:
    with Client(server.command, server.environment) as client:
        assert json.loads(client.call("read", {"path": path}).line)["result"]["isError"]


def test_a_server_that_fails_is_not_timed(server: Server) -> None:
    failing = server._replace(read=("read", {"path": "missing.txt"}))
    with Client(server.command, server.environment) as client, pytest.raises(SystemExit, match="did not read the file"):
        prove("plain", client, failing)


def test_an_error_of_the_protocol_is_no_answer(server: Server) -> None:
    with Client(server.command, server.environment) as client, pytest.raises(AssertionError, match="no such tool"):
        client.call("write", {})


def test_a_server_that_goes_is_told_of() -> None:
    with pytest.raises(AssertionError, match="the server went"):
        Client([sys.executable, "-c", "input()"], os.environ)


def test_what_a_server_tells_unasked_is_no_answer(tmp_path: Path) -> None:
    talker = tmp_path / "talker.py"
    talker.write_text("""\
import sys
for number, line in enumerate(sys.stdin):
    print('{"jsonrpc":"2.0","method":"notifications/message","params":{}}')
    if "initialized" not in line:
        print('{"jsonrpc":"2.0","id":%d,"result":{"tools":[]}}' % (1 if number == 0 else 2), flush=True)
""")
    with Client([sys.executable, str(talker)], os.environ) as client:
        assert json.loads(client.tools)["result"] == {"tools": []}


def test_reads_are_timed_one_by_one(server: Server) -> None:
    servers = {"a": server, "b": server}
    with running(servers) as clients:
        times = in_turns(servers, clients, 2)
    assert {name: len(taken) for name, taken in times.items()} == {"a": 2 * CALLS, "b": 2 * CALLS}


def test_a_file_that_is_read_once_is_another_each_time(server: Server, tmp_path: Path) -> None:
    for number in range(CALLS):
        (tmp_path / f"once-{number}.txt").write_text(TEXT)
    assert server.read_once(7) == ("read", {"path": "once-7.txt"})
    with running({"a": server}) as clients:
        assert len(in_turns({"a": server}, clients, 1, Server.read_once)["a"]) == CALLS
        prove("a", clients["a"], server)


def test_what_only_warms_is_left_out() -> None:
    assert without_first({"a": [9.0, 1.0, 2.0]}, 1) == {"a": Sample((1.0, 2.0))}


def test_a_start_takes_longer_until_a_file_is_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.mcp.STARTS", 1)
    rows = {row.name: row.value for row in cold({HANDRAIL: server, STANDARD_LIBRARY: server})}
    name = f"{STANDARD_LIBRARY}, median"
    assert 0 < rows[f"cold start: {name}"] < rows[f"start to first read: {name}"]


def test_a_warm_read_has_a_limit_beside_servers_that_have_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.mcp.SESSIONS", 2)
    monkeypatch.setattr("bench.mcp.ROUNDS", 1)
    rows = list(warm({HANDRAIL: server, STANDARD_LIBRARY: server}))
    assert [row.name for row in rows if row.limit is not None] == [f"warm read: {HANDRAIL} / {STANDARD_LIBRARY}"]


def test_a_server_is_compared_with_each_other_one() -> None:
    samples = {HANDRAIL: Sample((3.0, 2.0, 4.0)), "a": Sample((1.5,)), "b": Sample((6.0,))}
    rows = {row.name: row for row in compared("read", samples, "ms", {"a": 1.9})}
    assert rows["read: a, median"].value == 1_500
    assert rows["read: handrail / a"].value == 2.0
    assert rows["read: handrail / a"].verdict == "missed"
    assert rows["read: handrail / b"].value == 0.5
    assert rows["read: handrail / b"].verdict == "reported"
    assert "read: handrail / handrail" not in rows


def test_memory_is_what_the_kernel_counts() -> None:
    own = memory_of(os.getpid())
    assert 1 < own.resident <= own.most


def test_only_our_memory_has_a_limit() -> None:
    listed, read = Memory(20.0, 25.0), Memory(22.0, 31.0)
    rows = {row.name: row.verdict for row in kept({HANDRAIL: listed, "a": listed}, {HANDRAIL: read, "a": read})}
    assert rows == {
        "memory: handrail, tools listed": "ok",
        "memory: handrail, most until 1000 reads later": "missed",
        "memory: a, tools listed": "reported",
        "memory: a, most until 1000 reads later": "reported",
    }
