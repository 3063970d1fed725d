"""The network of commands that go on after their calls: open as long as they run, and every attempt is told once."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from background import SECONDS, asked, ended, polled_until, started

from handrail import Handrail
from handrail.protocol.events import Network as NetworkEvent
from handrail.protocol.events import ToolCallUpdate
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import Settings
from handrail.settings.model import NetworkSettings

Make = Callable[..., Handrail]
pytestmark = [
    pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]
CURL = "curl -sS --max-time 60"


class Page(BaseHTTPRequestHandler):
    """Answers every request."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"page\n")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def attempts(rail: Handrail) -> list[tuple[str, int, bool, str | None, bool]]:
    found = [event for event in rail.events() if isinstance(event, NetworkEvent)]
    return [(event.host, event.port, event.allowed, event.process, event.tool_call_id is not None) for event in found]


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_what_a_person_said_yes_to_stays_open_as_long_as_it_runs(rail: Make, port: int, workspace: Path) -> None:
    machine = Settings(network=NetworkSettings(allow=("[::1]:1",)))  # so that the address is a host
    one = rail(mode="ask", on_permission=lambda _: "once", session="s", settings=machine)
    url = f"http://127.0.0.1:{port}/"
    command = f"{CURL} {url}; until test -e go; do sleep 0.01; done; {CURL} {url}"
    result = one.exec(command, background=True)
    assert result.data is not None
    assert result.meta.sandbox is not None
    assert (result.meta.sandbox.net, f"127.0.0.1:{port}" in result.meta.sandbox.hosts) == ("listed", True)
    process = result.data.session_id
    assert process
    polled_until(one, process, "page\n")
    wait_until(lambda: attempts(one) == [("127.0.0.1", port, True, process, False)])  # told without being asked
    one.close()
    again = rail(mode="ask", session="s")
    (workspace / "go").touch()
    ended(again, process)
    asked(again, "poll", process)
    assert attempts(again) == [("127.0.0.1", port, True, process, False)] * 2
    again.end_session()


def test_nothing_is_sent_to_a_program_that_has_the_network_where_it_is_denied(rail: Make, port: int) -> None:
    open_one = rail(mode="full", session="s", settings=Settings(network=NetworkSettings(allow=(f"127.0.0.1:{port}",))))
    process = started(open_one, "bash")
    assert asked(open_one, "write", process, data="echo here\n").ok
    open_one.close()
    closed = rail(mode="full", session="s", deny=("net.connect",))
    error = closed.call("process", {"action": "write", "sessionId": process, "data": "echo there\n"}).error
    assert error is not None
    assert error.code == "POLICY_DENIED"
    assert "net.connect is denied here" in error.message
    assert asked(closed, "poll", process).ok
    shut = started(closed, "bash")  # has none, so it may be sent anything
    assert asked(closed, "write", shut, data="echo there\n").ok
    closed.end_session()


def test_what_ends_in_time_is_told_like_any_call(rail: Make, port: int) -> None:
    one = rail(mode="full", settings=Settings(network=NetworkSettings(allow=(f"127.0.0.1:{port}",))))
    result = one.exec(f"{CURL} http://127.0.0.1:{port}/; {CURL} http://127.0.0.1:1/", yield_ms=120_000)
    assert result.ok, result.error
    assert "page\n" in result.content
    assert "blocked: 127.0.0.1:1 " in result.content
    assert attempts(one) == [("127.0.0.1", port, True, None, True), ("127.0.0.1", 1, False, None, True)]


def test_who_is_interrupted_while_waiting_tells_what_was_tried(rail: Make, port: int) -> None:
    one = rail(mode="full", settings=Settings(network=NetworkSettings(allow=(f"127.0.0.1:{port}",))))
    main, tried = threading.get_ident(), threading.Event()
    one.subscribe(lambda event: tried.set() if isinstance(event, ToolCallUpdate) else None)

    def interrupt() -> None:
        assert tried.wait(60.0)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        one.exec(f"{CURL} http://127.0.0.1:{port}/; sleep 1000", yield_ms=120_000)
    thread.join()
    assert attempts(one) == [("127.0.0.1", port, True, None, True)]
    assert one.processes() == ()


def test_what_nobody_opened_is_not_reached(rail: Make, port: int) -> None:
    one = rail(mode="full")
    process = started(one, f"{CURL} http://127.0.0.1:{port}/")
    assert ended(one, process).exit_code != 0
    assert attempts(one) == []


def test_nothing_of_its_proxy_is_left(rail: Make, port: int, tmp_path: Path) -> None:
    one = rail(mode="full", settings=Settings(network=NetworkSettings(allow=(f"127.0.0.1:{port}",))))
    process = started(one, f"{CURL} http://127.0.0.1:{port}/")
    ended(one, process)
    asked(one, "remove", process)
    wait_until(lambda: list((tmp_path / "state").glob("workspaces/*/*/processes/*")) == [])
