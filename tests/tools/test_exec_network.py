"""The network of commands, through the whole pipeline: what is open, for whom, for how long, and what is told of it."""

import contextlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.process.keeper.network import serve_network as network_of_keeper
from handrail.process.sessions.sessions import ProcessSession
from handrail.protocol.events import Network as NetworkEvent
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import Settings
from handrail.settings.model import NetworkSettings, Restricted, Sandbox
from handrail.tools.exec import run as command_network

Make = Callable[..., Handrail]
pytestmark = [
    pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]
CURL = "curl -sS --max-time 60"


class Page(BaseHTTPRequestHandler):
    """Answers every request with what was asked for."""

    def do_GET(self) -> None:
        text = f"here is {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def serving() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server on this machine."""
    with serving() as found:
        yield found


def run(rail: Handrail, command: str, **more: Any) -> ToolResult[Any]:
    return rail.call("exec", {"command": command, **more})


def attempts(rail: Handrail) -> list[tuple[str, int, bool, str]]:
    found = [event for event in rail.events() if isinstance(event, NetworkEvent)]
    return [(event.host, event.port, event.allowed, event.reason) for event in found]


def listing(*entries: str, **more: Any) -> Settings:
    return Settings(network=NetworkSettings(allow=entries), **more)


# A yes. Settings list an address of this machine, so that the addresses of the tests' servers are hosts.
MACHINE = "[::1]:1"


def test_a_yes_opens_the_host_and_port_that_the_request_names_for_that_call(rail: Make, port: int) -> None:
    asked: list[PermissionRequest] = []

    def yes(request: PermissionRequest) -> str:
        asked.append(request)
        return "once"

    one = rail(mode="ask", on_permission=yes, settings=listing(MACHINE))
    result = run(one, f"{CURL} http://127.0.0.1:{port}/a")
    assert (result.content, result.summary) == ("here is /a\n", "exit code 0")
    assert (result.meta.sandbox.net, result.meta.sandbox.hosts) == ("listed", (MACHINE, f"127.0.0.1:{port}"))
    assert asked[0].hosts == (f"127.0.0.1:{port}",)
    assert f"127.0.0.1:{port} (an address of this machine)" in asked[0].reason
    assert attempts(one) == [("127.0.0.1", port, True, "a person approved it")]


def test_the_same_yes_opens_no_other_port_and_no_other_host(rail: Make, port: int) -> None:
    with serving() as other:
        one = rail(mode="ask", on_permission=lambda _: "once", settings=listing(MACHINE))
        sneaking = f"{CURL} http://127.0.0.1:{port}/a -L http://$(echo 127.0.0.1):{other}/b http://$(echo example).org/"
        result = run(one, sneaking)
    assert result.meta.sandbox.hosts == (MACHINE, f"127.0.0.1:{port}")
    assert "here is /a\n" in result.content
    assert "here is /b" not in result.content
    assert f"[blocked: 127.0.0.1:{other} is listed for port {port}, not for {other}]\n" in result.content
    assert "[blocked: example.org:80 is not listed]\n" in result.content
    assert result.summary.endswith(f"; blocked: 127.0.0.1:{other} is listed for port {port}, not for {other}")
    assert [allowed for *_, allowed, _ in attempts(one)] == [True, False, False]


def test_it_is_shut_again_for_the_next_call(rail: Make, port: int) -> None:
    one = rail(mode="ask", on_permission=lambda _: "once", settings=listing(MACHINE))
    assert run(one, f"{CURL} http://127.0.0.1:{port}/a").data.exit_code == 0
    # The address is in no word that could be one: the request names no host.
    later = run(one, f"{CURL} http://$(echo 127.0.0.1):{port}/a")
    assert later.meta.sandbox.net == "none"
    assert later.data.exit_code == 7
    assert len(attempts(one)) == 1


def test_a_no_opens_nothing(rail: Make, port: int) -> None:
    one = rail(mode="ask", on_permission=lambda _: "deny", settings=listing(MACHINE))
    assert not run(one, f"{CURL} http://127.0.0.1:{port}/a").ok
    assert attempts(one) == []


def test_full_mode_and_rules_ask_nobody_and_open_nothing_of_it(rail: Make) -> None:
    one = rail(mode="full")
    result = run(one, f"{CURL} http://example.org/a; getent hosts example.org; echo could not resolve; false")
    assert result.meta.sandbox.net == "none"
    assert "until network.allow in the settings lists example.org:80]" in result.content
    assert attempts(one) == []


# Denied


@pytest.mark.parametrize("mode", ["ask", "auto", "full"])
def test_a_denied_permission_closes_the_network_without_a_question(rail: Make, port: int, mode: str) -> None:
    asked: list[PermissionRequest] = []
    options: dict[str, Any] = {"settings": listing(f"127.0.0.1:{port}"), "on_permission": asked.append}
    one = rail(mode=mode, deny=("net.connect",), **options)
    for command in (f"{CURL} http://127.0.0.1:{port}/a", f"timeout 9 {CURL} http://$(echo 127.0.0.1):{port}/a"):
        error = run(one, command).error
        assert (error.code, error.details["rule"]) == ("POLICY_DENIED", "call.denied")
        assert "net.connect is denied here" in error.message
    assert (asked, attempts(one)) == ([], [])


def test_where_the_network_is_denied_other_commands_run_without_it(rail: Make, port: int, workspace: Path) -> None:
    (workspace / "get.sh").write_text(f"{CURL} http://127.0.0.1:{port}/a\n")
    one = rail(mode="full", deny=("net.connect",), settings=listing(f"127.0.0.1:{port}"))
    assert run(one, "touch a").meta.sandbox.net == "none"
    hidden = run(one, "bash get.sh")
    assert (hidden.data.exit_code, hidden.meta.sandbox.net, attempts(one)) == (7, "none", [])


# Listed


def test_what_settings_list_is_open_to_every_command_that_is_not_proven(rail: Make, port: int) -> None:
    one = rail(mode="full", settings=listing(f"127.0.0.1:{port}"))
    result = run(one, f"bash -c '{CURL} http://127.0.0.1:{port}/a'")
    assert result.content == "here is /a\n"
    assert attempts(one) == [("127.0.0.1", port, True, "network.allow lists it")]


def test_what_is_not_listed_is_refused_told_and_an_event(rail: Make, port: int) -> None:
    one = rail(mode="full", settings=listing("example.org:443"))
    result = run(one, f"{CURL} -f http://10.0.0.2:{port}/a")
    assert result.ok
    assert result.data.exit_code != 0
    assert result.content.endswith(f"[blocked: 10.0.0.2:{port} is not listed]\n")
    assert attempts(one) == [("10.0.0.2", port, False, "10.0.0.2 is not listed")]


def test_proven_commands_never_have_any(rail: Make) -> None:
    one = rail(mode="full", settings=listing("example.org:443"))
    assert run(one, "ls").meta.sandbox.net == "none"
    assert run(one, "touch a").meta.sandbox.net == "listed"


def test_the_restricted_profile_has_no_network(rail: Make) -> None:
    settings = listing("example.org:443", profile="restricted", restricted=Restricted(commands=("./run",)))
    assert run(rail(mode="full", settings=settings), "./run").meta.sandbox.net == "none"


OWN = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/page.txt", timeout=60).read().decode())
"""


def test_what_a_command_serves_itself_is_its_own(rail: Make, workspace: Path) -> None:
    (workspace / "own.py").write_text(OWN)
    (workspace / "page.txt").write_text("mine")
    one = rail(mode="full", settings=listing("example.org:443"))
    assert run(one, "python3 own.py 2>/dev/null").content == "mine\n"
    assert attempts(one) == []


# What is told


def test_many_blocked_hosts_are_told_in_a_few_lines(rail: Make) -> None:
    one = rail(mode="full", settings=listing("example.org:443"))
    result = run(one, f"for n in 1 2 3 4 5 6 7 7; do {CURL} -o /dev/null http://h$n.example.com; done")
    assert result.content.count("[blocked: h") == 5
    assert result.content.endswith("[2 more hosts were blocked]\n")
    assert len(attempts(one)) == 8


def test_what_is_kept_of_blocked_hosts_has_an_end(rail: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_network, "MAX_BLOCKED_ATTEMPTS", 6)
    one = rail(mode="full", settings=listing("example.org:443"))
    result = run(one, f"for n in 1 2 3 4 5 6 7 8; do {CURL} -o /dev/null http://h$n.example.com; done")
    assert result.content.count("[blocked: h") == 5
    assert result.content.endswith("[at least 1 more hosts were blocked]\n")


@pytest.mark.parametrize("more", [{}, {"yieldMs": 60_000}], ids=["waited for", "kept"])
def test_of_very_many_blocked_attempts_the_first_are_events_and_what_is_let_through_always_is(
    rail: Make, port: int, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    monkeypatch.setattr(command_network, "MAX_BLOCKED_ATTEMPTS", 3)
    one = rail(mode="full", settings=listing(f"127.0.0.1:{port}"))
    tries = f"{CURL} -o /dev/null http://h$n.example.com; {CURL} http://127.0.0.1:{port}/$n"
    result = run(one, f"for n in 1 2 3 4 5; do {tries}; done", **more)
    assert result.content.count("here is") == 5
    assert result.warnings == ("2 attempts were blocked, after the first 3, without own events.",)
    assert [allowed for _, _, allowed, _ in attempts(one)] == [False, True] * 3 + [True] * 2


# Sandboxes and sessions


def test_a_sandbox_without_namespaces_says_that_it_cannot_open_any(rail: Make, port: int) -> None:
    asked: list[PermissionRequest] = []
    settings = listing("example.org:443", sandbox=Sandbox(tier=1))
    one = rail(mode="ask", settings=settings, on_permission=lambda request: asked.append(request) or "once")
    if one.call("exec", {"command": "true"}).meta.sandbox.tier != 1:
        pytest.skip("Landlock does not work here")
    result = run(one, f"{CURL} http://127.0.0.1:{port}/a")
    assert result.error is not None
    assert result.error.code == "UNAVAILABLE"
    assert f"It needs 127.0.0.1:{port}, and the network is opened only in sandbox tier 2" in result.content
    assert asked == []
    assert run(one, "touch a").meta.sandbox.net == "none"


def test_two_commands_at_once_have_each_their_own(rail: Make, port: int) -> None:
    with serving() as other:
        rails = [rail(mode="full", settings=listing(f"127.0.0.1:{one}"), session=f"s{one}") for one in (port, other)]
        both = f"{CURL} http://127.0.0.1:{port}/a; {CURL} http://127.0.0.1:{other}/b; true"
        results: dict[int, ToolResult[Any]] = {}
        threads = [
            threading.Thread(target=lambda n=n, one=one: results.update({n: run(one, both)}))
            for n, one in enumerate(rails)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert ["here is /a" in results[n].content for n in (0, 1)] == [True, False]
    assert ["here is /b" in results[n].content for n in (0, 1)] == [False, True]
    for one in rails:
        assert [allowed for *_, allowed, _ in attempts(one)].count(True) == 1


def test_nothing_is_left_of_it(rail: Make, port: int, tmp_path: Path) -> None:
    one = rail(mode="full", settings=listing(f"127.0.0.1:{port}"))
    assert run(one, f"{CURL} http://127.0.0.1:{port}/a").content == "here is /a\n"
    walked = os.walk(tmp_path / "state")  # which minds nothing that goes meanwhile, as used layers do
    names = [name for _, folders, files in walked for name in (*folders, *files)]
    assert [name for name in names if name.startswith(("network-", "proxy"))] == []
    assert not any("proxy" in thread.name for thread in threading.enumerate())


def test_cancelling_ends_its_connections_too(rail: Make, port: int) -> None:
    one = rail(mode="full", settings=listing(f"127.0.0.1:{port}"))
    done: list[ToolResult[Any]] = []
    thread = threading.Thread(target=lambda: done.append(run(one, f"{CURL} http://127.0.0.1:{port}/a; sleep 60")))
    heard = threading.Event()
    one.subscribe(lambda event: heard.set() if isinstance(event, NetworkEvent) else None)
    thread.start()
    assert heard.wait(60)
    one.cancel()
    thread.join(60)
    assert done[0].error is not None
    assert done[0].error.code == "CANCELLED"
    assert not any("proxy" in thread.name for thread in threading.enumerate())


# Commands that may go on


def process_attempts(rail: Handrail) -> list[tuple[str, int, bool, bool]]:
    found = [event for event in rail.events() if isinstance(event, NetworkEvent)]
    return [(event.host, event.port, event.allowed, event.process is not None) for event in found]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_command_that_ends_before_it_is_handed_over_is_told_as_any_other(rail: Make, port: int) -> None:
    one = rail(mode="ask", on_permission=lambda _: "once", settings=listing(MACHINE))
    result = run(one, f"{CURL} http://127.0.0.1:{port}/a http://$(echo example).org", yieldMs=60_000)
    assert "here is /a" in result.content
    assert result.content.endswith("[blocked: example.org:80 is not listed]\n")
    assert result.meta.sandbox.net == "listed"
    assert attempts(one)[0] == ("127.0.0.1", port, True, "a person approved it")
    assert process_attempts(one) == [("127.0.0.1", port, True, False), ("example.org", 80, False, False)]


def test_a_background_command_keeps_its_hosts_and_each_attempt_is_told_once(rail: Make, port: int) -> None:
    one = rail(mode="full", settings=listing(f"127.0.0.1:{port}"), session="named")
    text = f"{CURL} http://127.0.0.1:{port}/a; read line; {CURL} http://127.0.0.1:{port}/$line http://example.org; cat"
    started = run(one, text, background=True)
    assert (started.meta.sandbox.net, started.meta.sandbox.hosts) == ("listed", (f"127.0.0.1:{port}",))
    until(lambda: len(process_attempts(one)) == 1)
    assert one.processes()[0].ports == ()
    one.close()
    again = rail(mode="full", session="named")
    again.process("write", started.data.session_id, data="b\n")
    until(lambda: len(process_attempts(again)) == 3)
    again.process("remove", started.data.session_id)
    known = ("127.0.0.1", port, True, True)
    assert process_attempts(again) == [known, known, ("example.org", 80, False, True)]
    again.end_session()


def test_where_an_attempt_cannot_be_written_down_nothing_is_let_through(small_disk: Path, port: int) -> None:
    folder = os.open(small_disk, os.O_RDONLY)
    listed = [f"127.0.0.1:{port}"]
    with socket.socket(socket.AF_UNIX) as program, network_of_keeper(folder, str(small_disk / "n"), listed):
        with (small_disk / "rest").open("wb", buffering=0) as rest, contextlib.suppress(OSError):
            while rest.write(b"x" * 100):
                pass
        program.connect(f"/proc/self/fd/{folder}/n/proxy.sock")
        program.sendall(f"GET http://127.0.0.1:{port}/a HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        answer = program.makefile("rb").read()
    os.close(folder)
    assert b"could not be logged, so nothing was sent" in answer
    assert b"here is" not in answer
    assert ProcessSession(str(small_disk)).attempts(0) == []
