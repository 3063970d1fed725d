"""The network that background processes of a session share: who reaches a server there, and who does not."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from background import asked, ended, polled_until, record_when, started
from msgspec.structs import replace

from handrail import Handrail
from handrail.kernel.procfs import find_process
from handrail.process.sessions.ports import open_shared_network
from handrail.process.sessions.store import ProcessIdentity, read_record
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import Settings
from handrail.settings.model import NetworkSettings

Make = Callable[..., Handrail]
pytestmark = [
    pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]
SERVER = """
import http.server, os, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(f"page {self.path} {self.headers.get('User-Agent')}\\n".encode())
    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        open("posted", "wb").write(text)
        self.answer(b"taken " + text)
    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
PORT = 8000


class Machine(BaseHTTPRequestHandler):
    """A server of this machine, outside of every sandbox."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"outside")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def machine_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Machine) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def server_file(workspace: Path) -> None:
    (workspace / "server.py").write_text(SERVER)


def serve(rail: Handrail, port: int = PORT, **more: Any) -> str:
    """A background process that listens by now."""
    process = started(rail, f"python3 server.py {port}", **more)
    record_when(rail, process, lambda record: port in record.ports)
    return process


class Person:
    """Answers requests, and keeps them."""

    def __init__(self) -> None:
        self.requests: list[PermissionRequest] = []

    def __call__(self, request: PermissionRequest) -> Any:
        self.requests.append(request)
        return "once"


def joined(result: ToolResult[Any]) -> bool:
    assert result.meta.sandbox is not None
    return result.meta.sandbox.joined


def test_a_reading_request_reaches_the_server_unasked_in_ask_mode(rail: Make) -> None:
    person = Person()
    one = rail(mode="ask", on_permission=person)
    serve(one)
    assert len(person.requests) == 1
    for command in (
        f"curl -sS localhost:{PORT}/a",
        f"curl -sS http://127.0.0.1:{PORT}/a | head -1",
        f"curl -s http://127.9.8.7:{PORT}/a || timeout 20 curl -sSf http://0.0.0.0:{PORT}/a",
    ):
        result = one.exec(command)
        assert result.ok, result.error
        assert result.content.startswith("page /a curl/"), result.content
        assert joined(result)
        assert result.meta.sandbox is not None
        assert (result.meta.sandbox.net, result.meta.sandbox.undo) == ("none", "read-only")
    assert one.exec(f"curl -sS http://localhost:{PORT}/a?b=1").content.startswith("page /a?b=1 ")
    assert len(person.requests) == 1
    one.end_session()


@pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed")
def test_wget_prints_a_page_unasked(rail: Make) -> None:
    serve(rail(mode="full", session="s"))
    one = rail(mode="plan", session="s")
    assert one.exec(f"wget -qO- http://localhost:{PORT}/b").content.startswith("page /b Wget/")
    one.end_session()


def test_two_background_processes_reach_each_other_and_list_their_own_ports(rail: Make, workspace: Path) -> None:
    one = rail(mode="full")
    first, second = serve(one, 8001), serve(one, 8002)
    ports = {record.id: record.ports for record in one.processes()}
    assert ports == {first: (8001,), second: (8002,)}
    third = started(one, "curl -sS localhost:8001/x localhost:8002/y")
    ended(one, third)
    assert "page /x" in (log := asked(one, "log", third).content)
    assert "page /y" in log
    asked(one, "kill", first)
    assert "page /z" in one.exec("curl -sS localhost:8002/z").content  # the network lasts as long as one of them
    one.end_session()


def test_a_command_that_may_go_on_shares_the_network(rail: Make) -> None:
    one = rail(mode="auto")
    result = one.exec(f"python3 server.py {PORT}", yield_ms=500)
    assert result.ok, result.error
    assert result.data is not None
    record_when(one, result.data.session_id or "", lambda record: PORT in record.ports)
    assert "page /" in one.exec(f"curl -sS localhost:{PORT}/").content
    one.end_session()


def test_an_allowed_command_joins_in_its_overlay(rail: Make, workspace: Path) -> None:
    serve(rail(mode="full", session="s"))
    one = rail(mode="auto", session="s")
    result = one.exec(
        f"python3 -c 'import urllib.request as u; print(u.urlopen(\"http://localhost:{PORT}/p\").read())' > page"
    )
    assert result.ok, result.error
    assert joined(result)
    assert "page /p" in (workspace / "page").read_text()
    assert one.undo().ok
    assert not (workspace / "page").exists()
    one.end_session()


def test_a_request_that_sends_data_asks_without_a_preview_and_then_reaches_the_server(
    rail: Make, workspace: Path
) -> None:
    person = Person()
    one = rail(mode="ask", on_permission=person)
    serve(one)
    assert not (workspace / "posted").exists()
    result = one.exec(f"curl -sS -d sent localhost:{PORT}")
    [_, request] = person.requests
    assert request.preview is not None
    assert (request.preview.kind, "background process" in (request.preview.text or "")) == ("none", True)
    assert result.content.startswith("taken sent"), result.content
    assert (joined(result), (workspace / "posted").read_text()) == (True, "sent")
    one.end_session()


def test_a_preview_reaches_no_server_and_approval_runs_the_command(rail: Make, workspace: Path) -> None:
    (workspace / "client.py").write_text(
        f"import urllib.request as u\nprint(u.urlopen('http://localhost:{PORT}', b'hidden').read().decode())\n"
    )
    seen: list[bool] = []

    def person(request: PermissionRequest) -> Any:
        seen.append((workspace / "posted").exists())
        assert request.preview is not None
        assert request.preview.kind == "none"
        return "once"

    one = rail(mode="ask", on_permission=person)
    serve(one)
    result = one.exec("python3 client.py")
    assert result.content.startswith("taken hidden"), result.content
    assert seen == [False, False]
    one.end_session()


def test_a_preview_that_needs_no_server_is_shown_and_kept_while_one_runs(rail: Make, workspace: Path) -> None:
    person = Person()
    one = rail(mode="ask", on_permission=person)
    serve(one)
    result = one.exec("echo new > file")
    preview = person.requests[-1].preview
    assert preview is not None
    assert preview.kind == "run"
    assert (joined(result), (workspace / "file").read_text()) == (False, "new\n")
    one.end_session()


def test_the_ports_of_this_machine_are_not_reached(rail: Make, machine_port: int) -> None:
    one = rail(mode="full")
    serve(one)
    for host in ("localhost", "127.0.0.1", "0.0.0.0"):
        result = one.exec(f"curl -sS http://{host}:{machine_port}/ || echo refused >&2")
        assert "outside" not in result.content
        assert "refused" in result.content
        assert joined(result)
    assert one.exec("python3 -c 'import socket; print(socket.if_nameindex())'").content == "[(1, 'lo')]\n"
    one.end_session()


def test_a_loopback_address_is_no_host_that_an_approval_opens(rail: Make, machine_port: int) -> None:
    person = Person()
    one = rail(mode="ask", on_permission=person)
    result = one.exec(f"echo x > made; curl -sS -d x http://127.0.0.1:{machine_port}/")
    [request] = person.requests
    assert "outside" not in result.content
    assert "127.0.0.1" not in (request.reason or "")
    assert one.exec(f"curl -sS -d x http://127.0.0.1:{machine_port}/").meta.answered_by == "preview"


def test_a_listed_address_of_this_machine_keeps_its_meaning(rail: Make, machine_port: int) -> None:
    person = Person()
    settings = Settings(network=NetworkSettings(allow=(f"127.0.0.1:{machine_port}",)))
    one = rail(mode="ask", on_permission=person, settings=settings)
    result = one.exec(f"curl -sS http://127.0.0.1:{machine_port}/")
    assert "outside" in result.content
    assert len(person.requests) == 1


def test_commands_with_listed_hosts_share_the_network_and_each_has_its_proxy(rail: Make, machine_port: int) -> None:
    settings = Settings(network=NetworkSettings(allow=("listed.example:80",)))
    one = rail(mode="full", settings=settings)
    first = started(one, f"python3 server.py {PORT}")
    second = started(one, "python3 server.py 8001")
    for process, port in ((first, PORT), (second, 8001)):
        assert record_when(one, process, lambda record: bool(record.ports)).ports == (port,)
    result = one.exec(f"curl -sS http://localhost:{PORT}/a http://localhost:8001/b; curl -sS http://other.example/")
    assert "page /a" in result.content
    assert "page /b" in result.content
    assert "blocked: other.example:80 is not listed" in result.content
    assert joined(result)
    one.end_session()


def test_a_command_with_approved_hosts_has_its_own_network(rail: Make) -> None:
    one = rail(mode="ask", on_permission=lambda _: "once")
    serve(one)
    result = one.exec(f"curl -sS http://localhost:{PORT}/ http://opened.example/")
    assert "page" not in result.content
    assert not joined(result)
    assert result.meta.sandbox is not None
    assert result.meta.sandbox.net == "listed"
    one.end_session()


def test_another_session_does_not_reach_the_server(rail: Make) -> None:
    mine, other = rail(mode="full", session="mine"), rail(mode="full", session="other")
    serve(mine)
    result = other.exec(f"curl -sS localhost:{PORT}")
    assert (result.data.exit_code if result.data else None) == 7
    assert not joined(result)
    started(other, "sleep 1000")
    result = other.exec(f"curl -sS localhost:{PORT}")
    assert (result.data.exit_code if result.data else None) == 7
    assert joined(result)  # the network of its own processes
    mine.end_session()
    other.end_session()


def test_after_the_end_of_the_server_a_request_is_refused(rail: Make) -> None:
    one = rail(mode="ask", on_permission=lambda _: "once")
    process = serve(one)
    asked(one, "kill", process)
    result = one.exec(f"curl -sS localhost:{PORT}")
    assert (result.ok, joined(result)) == (True, False)
    assert "Connection refused" in result.content or "Failed to connect" in result.content
    one.end_session()


def test_curl_reads_no_configuration_of_the_workspace(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask", on_permission=lambda _: "once")
    serve(one)
    (workspace / ".curlrc").write_text('user-agent = "configured"\noutput = "stolen"\n')
    result = one.exec(f"curl -sS localhost:{PORT}/a")
    assert result.content.startswith("page /a curl/")
    assert not (workspace / "stolen").exists()
    one.end_session()


def test_one_command_with_its_own_server_does_not_ask_in_auto_mode(rail: Make) -> None:
    one = rail(mode="auto")
    result = one.exec(
        f"python3 server.py {PORT} & curl -sS --retry 50 --retry-connrefused localhost:{PORT}/own; kill %1"
    )
    assert result.ok, result.error
    assert "page /own" in result.content


_LOOK = """
import os
print(*(os.readlink(f"/proc/self/ns/{name}") for name in ("net", "user", "pid", "mnt", "ipc")))
print([open(f"/proc/{name}/cmdline").read() for name in os.listdir("/proc") if name.isdigit()])
"""


def test_commands_of_a_shared_network_share_nothing_else(rail: Make, workspace: Path) -> None:
    (workspace / "look.py").write_text(_LOOK)
    one = rail(mode="full")
    process = started(one, "python3 look.py; python3 server.py 8000")
    record_when(one, process, lambda record: bool(record.ports))
    seen = [asked(one, "log", process).content, one.exec("python3 look.py").content]
    spaces = [text.splitlines()[0].split() for text in seen]
    assert [left == right for left, right in zip(*spaces, strict=True)] == [True, False, False, False, False]
    assert "server.py" not in seen[1]
    one.end_session()


def test_a_reused_process_number_opens_no_network(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="full", session="s")
    serve(one)
    [folder] = (tmp_path / "state").glob("workspaces/*/s/processes/p-*")
    record = read_record(str(folder))
    assert record is not None
    network = open_shared_network(record)
    assert network is not None
    os.close(network)
    later = ProcessIdentity(record.program.number, record.program.started - 1)
    assert open_shared_network(replace(record, program=later)) is None
    here = ProcessIdentity(os.getpid(), find_process(os.getpid()).started)  # type: ignore[union-attr]
    assert open_shared_network(replace(record, program=here)) is None  # the network of this machine
    one.end_session()


def test_the_proxy_of_a_background_process_is_no_way_out_for_a_reading_request(rail: Make) -> None:
    settings = Settings(network=NetworkSettings(allow=("listed.example:80",)))
    one = rail(mode="full", session="s", settings=settings)
    process = started(one, "env | grep http_proxy=; sleep 1000")
    address = polled_until(one, process, "\n").strip().partition("=")[2]
    assert address.startswith("http://127.")
    plan = rail(mode="plan", session="s", settings=settings)
    result = plan.exec(f"curl -s -w '%{{http_code}}' -o /dev/null {address}/http://listed.example/")
    assert (result.content.partition("\n")[0], joined(result)) == ("400", True)
    assert not plan.exec(f"curl -s -x {address} http://localhost/").ok
    one.end_session()


_UNIX_SERVER = """
import socket
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0shared")
listener.listen()
print("ready", flush=True)
listener.accept()
print("met")
"""


def test_abstract_unix_sockets_belong_to_the_shared_network(rail: Make, workspace: Path) -> None:
    (workspace / "unix.py").write_text(_UNIX_SERVER)
    one = rail(mode="ask", on_permission=lambda _: "once")
    process = started(one, "python3 unix.py")
    polled_until(one, process, "ready")
    assert joined(one.exec("curl -sS --abstract-unix-socket shared http://localhost/"))
    ended(one, process)
    assert "met" in asked(one, "log", process).content
    one.end_session()
