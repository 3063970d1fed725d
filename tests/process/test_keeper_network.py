"""A kept command that has a network: its keeper's proxy, and what was tried through it."""

import http.server
import os
import resource
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from process_launches import comes_true

import handrail.process.keeper.network as keeper_network
from handrail.process.keeper.network import serve_network
from handrail.process.keeper.state import ATTEMPTS
from handrail.process.sessions.keeper_client import ProxyPlan
from handrail.process.sessions.sessions import ProcessSession, ProcessSessions
from handrail.process.sessions.store import read_record
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import ResourceLimits, SandboxHost, SandboxProfile
from handrail.sandbox.sandbox import CommandSandbox


class _Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"served")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def start(
    sessions: ProcessSessions, folder: Path, command: str, *allow: str, listed: tuple[str, ...] | None = None
) -> ProcessSession:
    for name in ("home", "workspace"):
        (folder / name).mkdir(exist_ok=True)
    host = SandboxHost(home=str(folder / "home"), environ=dict(os.environ), state=str(folder / "state"))
    sandbox = CommandSandbox(host, most=2)
    if sandbox.tier != 2 or shutil.which("curl", path="/usr/bin:/bin") is None:
        pytest.skip("no namespaces here, or no curl")
    plan, place = ProxyPlan(str(folder / "state" / "net"), allow), str(folder / "workspace")
    confinement = SandboxProfile(
        origin="approved",
        cwd=place,
        read_only=(),
        writable=(place,),
        proxy=f"{plan.folder}/proxy.sock",
        listed=allow if listed is None else listed,
    )
    launch = sandbox.launch(confinement, command)
    options = {"session_id": "s", "command": command, "cwd": ".", "limits": ResourceLimits(), "idle_seconds": 600.0}
    return sessions.start(launch, proxy=plan, **options)


def test_what_is_listed_is_reached_and_every_attempt_is_told(
    sessions: ProcessSessions, tmp_path: Path, port: int
) -> None:
    url = f"http://127.0.0.1:{port}/"
    one = start(sessions, tmp_path, f"curl -s --noproxy '' {url}; curl -s http://evil.test/", f"127.0.0.1:{port}")
    assert one.wait(60.0)
    assert b"served" in b"".join(one.log.kept())
    attempts = one.attempts(0)
    assert [(attempt.host, attempt.allowed) for attempt in attempts] == [("127.0.0.1", True), ("evil.test", False)]
    assert one.attempts(1) == attempts[1:]
    assert comes_true(lambda: not (tmp_path / "state" / "net").exists())


def test_what_a_killed_keeper_leaves_of_its_proxy_goes_with_it(sessions: ProcessSessions, tmp_path: Path) -> None:
    one = start(sessions, tmp_path, "echo ready; sleep 1000", "example.org")
    assert comes_true(lambda: one.log.size > 0, 60.0)
    assert one.record().ports == (), "the port that leads to the proxy is ours"
    known = read_record(one.folder)
    assert known is not None
    os.kill(known.keeper.number, signal.SIGKILL)
    assert one.wait(60.0)
    one.remove()
    assert comes_true(lambda: not (tmp_path / "state" / "net").exists())


def test_an_entry_that_is_none_starts_nothing(sessions: ProcessSessions, tmp_path: Path) -> None:
    with pytest.raises(ToolError):
        start(sessions, tmp_path, "true", "not an entry", listed=())
    assert sessions.list_sessions() == []


def get(folder: Path, port: int) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as answer:
        connection.settimeout(60)
        connection.connect(str(folder / "proxy.sock"))
        connection.sendall(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        return answer.read()


def test_what_is_let_through_is_written_down_whatever_was_blocked_before(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_network, "_MAX_BLOCKED_ATTEMPTS", 2)
    session = os.open(tmp_path, os.O_RDONLY)
    try:
        with serve_network(session, str(tmp_path / "net"), [f"127.0.0.1:{port}"]):
            blocked = [get(tmp_path / "net", port - 1) for _ in range(4)]
            assert get(tmp_path / "net", port).endswith(b"served")
    finally:
        os.close(session)
    assert all(answer.startswith(b"HTTP/1.1 403") for answer in blocked)
    assert [attempt.allowed for attempt in ProcessSession(str(tmp_path)).attempts(0)] == [False, False, True]


def test_what_cannot_be_written_down_is_not_let_through_and_leaves_no_half_line(tmp_path: Path, port: int) -> None:
    """A command can fill the disk that its own attempts are written to."""
    session, limits = os.open(tmp_path, os.O_RDONLY), resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with serve_network(session, str(tmp_path / "net"), [f"127.0.0.1:{port}"]):
            assert get(tmp_path / "net", port).endswith(b"served")
            full = (tmp_path / ATTEMPTS).stat().st_size + 10
            resource.setrlimit(resource.RLIMIT_FSIZE, (full, limits[1]))
            try:
                assert b"could not be logged, so nothing was sent" in get(tmp_path / "net", port)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert get(tmp_path / "net", port).endswith(b"served")
    finally:
        os.close(session)
    assert [attempt.allowed for attempt in ProcessSession(str(tmp_path)).attempts(0)] == [True, True]
