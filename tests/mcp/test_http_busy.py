"""Over HTTP, who is busy keeps nobody waiting but itself, and nothing that hangs keeps the server."""

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
from http_process import PATIENCE, HttpProcess, environment
from plain_http import ACCEPT, Session, call, hears, message

from handrail.mcp.http.handlers import HttpHandlers
from handrail.mcp.http.request_runner import CallThreads
from handrail.mcp.protocol import Caller
from handrail.mcp.sessions import SessionPool
from handrail.protocol.schema import to_mcp_tool

_HANGING = '''
import os, threading, time
from handrail import Context, tool

def begin(mark: str) -> None:
    with open(mark + ".part", "w") as begun:
        begun.write(" ".join(os.environ))
    os.rename(mark + ".part", mark)

@tool
def hang(mark: str) -> str:
    """Never ends."""
    begin(mark)
    threading.Event().wait()
    return ""

@tool
def linger(mark: str, context: Context) -> str:
    """Takes longer to end than servers like to wait."""
    begin(mark)
    while not context.cancelled():
        time.sleep(0.01)
    time.sleep(1.2)
    return ""
'''


def _appears(path: Path) -> None:
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def _hanging(folder: Path, hold: ExitStack, patience: float, tool: str = "hang") -> tuple[HttpProcess, socket.socket]:
    """A server in the middle of a call that never ends, and what it answers to that. `patience`: how long it waits for
    such, twice."""
    home, tools = Path(environment(folder)["HOME"]), folder / "tools"
    (home / ".config" / "handrail").mkdir(parents=True)
    (home / ".config" / "handrail" / "config.toml").write_text(f'[tools]\nfolders = ["{tools}"]\n')
    tools.mkdir()
    (tools / "hanging.py").write_text(_HANGING)
    hurry = (
        "import sys; from handrail.mcp.http import application; "
        f"application._GOODBYE_SECONDS = application._JOIN_SECONDS = {patience}; "
        "from handrail.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", hurry, "mcp", "--http", "127.0.0.1:0"]
    server = hold.enter_context(HttpProcess(folder, "--mode", "full", words=words))
    begun = hold.enter_context(Session(server)).begin(call(tool, {"mark": str(folder / "begun")}))
    stream = hold.enter_context(begun)
    _appears(folder / "begun")
    return server, stream


def test_a_tool_that_never_ends_does_not_keep_the_server(tmp_path: Path) -> None:
    with ExitStack() as hold:
        server, _ = _hanging(tmp_path, hold, 0.2)
        assert server.stop() == 0


def test_a_call_that_takes_long_to_stop_is_answered_before_the_server_ends(tmp_path: Path) -> None:
    with ExitStack() as hold:
        server, stream = _hanging(tmp_path, hold, PATIENCE, "linger")
        server.process.send_signal(signal.SIGTERM)
        hears(stream, b'"result"')
        assert server.process.wait(PATIENCE) == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with ExitStack() as hold:
        server, _ = _hanging(tmp_path, hold, PATIENCE)
        assert "HANDRAIL_TOKEN" not in (tmp_path / "begun").read_text(), "what is loaded or started here needs no token"
        server.process.send_signal(signal.SIGHUP)
        assert server.stop() == 130


def test_who_listens_is_told_that_the_server_ends(tmp_path: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
    headers = {**ACCEPT, "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
    listen: dict[str, Any] = {"json": message("subscriptions/listen", params), "headers": headers, "timeout": PATIENCE}
    with HttpProcess(tmp_path) as server:
        listen["headers"] |= server.headers
        with httpx2.stream("POST", server.url, **listen) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data: "))
            next(lines)  # it listens
            server.process.send_signal(signal.SIGTERM)
            assert '"result"' in list(lines)[-1]
        assert server.process.wait(PATIENCE) == 0


def test_calls_that_take_turns_keep_neither_other_clients_nor_their_own_from_looking(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "--mode", "full") as server, ExitStack() as hold:
        (server.workspace / "a.txt").write_text("a\n")
        busy, other = (hold.enter_context(Session(server, name)) for name in ("busy", "other"))
        begun = call("exec", {"command": "echo begun; sleep 600"}, _meta={"progressToken": 1})
        hears(hold.enter_context(busy.begin(begun)), b"begun")
        for _ in range(40):
            hold.enter_context(busy.begin(call("exec", {"command": "true"})))
        for client in (busy, other):
            assert client.result(call("read", {"path": "a.txt"}))["content"][0]["text"] == "a\n"


def test_what_a_tool_takes_is_known_without_listing_all_of_them(rail: Callable[..., Any]) -> None:
    """The SDK asks for it before every call of 2026-07-28."""
    rails = SessionPool(lambda caller: rail(session=caller.name))
    handlers = HttpHandlers(rails, CallThreads())
    assert handlers.find_schema("read") is None, "nobody is here yet"
    specs = rails.get_calls(Caller(name="here")).rail.specs()
    assert [handlers.find_schema(spec.name) for spec in specs] == [to_mcp_tool(spec)["inputSchema"] for spec in specs]
    assert handlers.find_schema("nothing") is None


def test_a_session_that_takes_long_to_open_keeps_no_other_client_waiting(rail: Callable[..., Any]) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def opened(caller: Caller) -> Any:
        if caller.name == "slow":
            begun.set()
            assert go_on.wait(PATIENCE)
        return rail(session=caller.name)

    rails = SessionPool(opened)
    slow = threading.Thread(target=lambda: rails.get_calls(Caller(name="slow")))
    slow.start()
    assert begun.wait(PATIENCE)
    assert rails.get_calls(Caller(name="quick")).rail.session_id == "quick"
    go_on.set()
    slow.join()
    rails.close()
