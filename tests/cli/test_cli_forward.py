"""handrail processes forward: a port of a background command, opened on this machine, until somebody ends it."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.escape.starting import ordinary_number, python_for

from handrail import Handrail
from handrail.kernel.procfs import find_process
from handrail.process.sessions.ports import MAX_CONNECTIONS
from handrail.protocol.events import Notice
from handrail.sandbox.proxy.handover import PORT
from handrail.settings import Settings
from handrail.settings.model import NetworkSettings, Sandbox

Run = Callable[..., Any]
SECONDS = 60.0
REPOSITORY = Path(__file__).parents[2]
# Answers each connection, as soon as its client has ended its own side, with what it was sent, in capitals.
SHOUTS = """
import socket, threading
def serve(one):
    with one: one.sendall(b"".join(iter(lambda: one.recv(65536), b"")).upper())
with socket.create_server(("127.0.0.1", 8000)) as server:
    while True: threading.Thread(target=serve, args=server.accept()[:1]).start()
"""


@pytest.fixture
def rail(workspace: Path, state: Path) -> Iterator[Handrail]:
    """The session cli, in a sandbox with a network of its own."""
    settings = Settings(sandbox=Sandbox(tier=2, least=2))
    opened = Handrail(workspace, mode="full", session="cli", state_dir=state, settings=settings)
    yield opened
    opened.end_session()


@pytest.fixture
def forward(environment: dict[str, str], workspace: Path) -> Callable[..., contextlib.AbstractContextManager[Any]]:
    @contextlib.contextmanager
    def go(process: str, port: int = 8000) -> Iterator[tuple["subprocess.Popen[str]", int]]:
        words = [sys.executable, "-m", "handrail", "processes", "forward", process, str(port), "--to", "0"]
        with forwarded(words, cwd=workspace, env=environment) as made:
            yield made

    return go


@contextlib.contextmanager
def forwarded(words: list[str], **options: Any) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """The command as it goes on, and the port that it says; it leaves no process behind."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as made:
        try:
            assert made.stdout is not None
            said = made.stdout.readline()
            assert said.startswith("http://127.0.0.1:"), made.communicate()
            children = Path(f"/proc/{made.pid}/task/{made.pid}/children").read_text().split()
            assert len(children) == 1
            yield made, int(said.split("/")[2].rpartition(":")[2])
            made.wait(SECONDS)
            assert all(is_gone(child) for child in children)
        finally:
            made.kill()


def is_gone(number: str) -> bool:
    """Whether it has ended; one whose parent was killed may wait for somebody to ask how."""
    found = find_process(int(number))
    return found is None or found.dead


def started(rail: Handrail, command: str, *, ports: tuple[int, ...] = (8000,)) -> str:
    """A background command that listens."""
    result = rail.exec(command, background=True)
    if not result.ok and result.error is not None and result.error.code == "SANDBOX_UNAVAILABLE":
        pytest.skip(result.error.message)
    until(lambda: rail.processes()[-1].ports == ports)
    return rail.processes()[-1].id


def until(holds: Callable[[], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), SECONDS)


def all_of(one: socket.socket) -> bytes:
    """What comes until the other side ends it, or breaks it off."""
    with contextlib.suppress(ConnectionResetError):
        return b"".join(iter(lambda: one.recv(1 << 16), b""))
    return b""


def fetched(port: int, path: str) -> bytes:
    with connected(port) as one, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        one.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        return all_of(one)
    return b""


def open_descriptors(made: "subprocess.Popen[str]") -> list[str]:
    return os.listdir(f"/proc/{made.pid}/fd")


def interrupted(made: "subprocess.Popen[str]") -> None:
    made.send_signal(signal.SIGINT)
    assert made.wait(SECONDS) == 130


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_server_in_the_background_is_fetched_until_ctrl_c(
    rail: Handrail, forward: Any, workspace: Path, address: str
) -> None:
    (workspace / "page.txt").write_text("the page\n")
    process = started(rail, f"python3 -m http.server 8000 --bind {address}")
    with forward(process[:8]) as (made, port):
        assert fetched(port, "/page.txt").endswith(b"\r\n\r\nthe page\n")
        interrupted(made)
    notices = [event.text for event in rail.events() if isinstance(event, Notice)]
    assert notices[-1:] == [f"A person opened port 8000 of {process} on 127.0.0.1:{port}."]


def test_connections_at_once_are_kept_apart_and_either_side_may_end_its_own(rail: Handrail, forward: Any) -> None:
    (Path(rail.workspace) / "shouts.py").write_text(SHOUTS)
    process = started(rail, "python3 shouts.py")
    with forward(process) as (made, port):
        before = len(open_descriptors(made))
        with connected(port) as one, connected(port) as other:
            one.sendall(b"first")
            other.sendall(b"other" * 100_000)
            other.shutdown(socket.SHUT_WR)
            assert all_of(other) == b"OTHER" * 100_000
            one.shutdown(socket.SHUT_WR)
            assert all_of(one) == b"FIRST"
        for _ in range(80):  # more than there may be at a time
            with connected(port) as one:
                one.sendall(b"x")
                one.shutdown(socket.SHUT_WR)
                assert all_of(one) == b"X"
        until(lambda: len(open_descriptors(made)) == before)
        interrupted(made)


def test_more_than_may_be_at_a_time_wait_until_one_has_ended(rail: Handrail, forward: Any) -> None:
    (Path(rail.workspace) / "shouts.py").write_text(SHOUTS)
    process = started(rail, "python3 shouts.py")
    with forward(process) as (made, port), contextlib.ExitStack() as opened:
        before = len(open_descriptors(made))
        held = [opened.enter_context(connected(port)) for _ in range(MAX_CONNECTIONS)]
        until(lambda: len(open_descriptors(made)) == before + 2 * MAX_CONNECTIONS)
        waits = opened.enter_context(connected(port))
        waits.sendall(b"late")
        waits.shutdown(socket.SHUT_WR)
        assert len(open_descriptors(made)) == before + 2 * MAX_CONNECTIONS
        held[0].close()
        assert all_of(waits) == b"LATE"
        interrupted(made)


def test_one_that_is_killed_leaves_nobody_in_the_network(rail: Handrail, forward: Any) -> None:
    process = started(rail, "python3 -m http.server 8000")
    with forward(process) as (made, _):
        [child] = Path(f"/proc/{made.pid}/task/{made.pid}/children").read_text().split()
        made.kill()
        made.wait(SECONDS)
        until(lambda: is_gone(child))


def test_where_nobody_listens_the_connection_is_closed_and_it_goes_on(rail: Handrail, forward: Any) -> None:
    process = started(rail, "read word; exec python3 -m http.server 8000", ports=())
    with forward(process) as (made, port):
        assert fetched(port, "/") == b""
        rail.process("write", process, data="now\n")
        until(lambda: b" 200 " in fetched(port, "/"))
        interrupted(made)
        assert made.stderr is not None
        assert f"nothing listens on port 8000 of {process} yet\n" in made.stderr.read()


def test_it_ends_with_the_process_session(rail: Handrail, forward: Any) -> None:
    process = started(rail, "python3 -m http.server 8000")
    with forward(process) as (made, port), connected(port):  # somebody who stays keeps it no longer
        rail.process("kill", process)
        assert made.wait(SECONDS) == 0
        assert made.stderr is not None
        assert made.stderr.read().splitlines()[-1] == f"{process}: stopped"


def test_what_cannot_be_is_told_in_one_line(rail: Handrail, run: Run) -> None:
    process = started(rail, "cat", ports=())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("processes", "forward", process, port, "-q")
        assert (done.code, done.out) == (1, "")
        assert done.err == (
            f"error: port {port} of this machine is taken. Nothing is forwarded.\n"
            "next: handrail help processes forward\n"
        )
    unknown = run("processes", "forward", "p-nothere", "8000", "-q")
    assert (unknown.code, unknown.err.startswith("error: there is no process session 'p-nothere'.")) == (1, True)
    assert [run("processes", "forward", process, port, "-q").code for port in ("0", "65536", "http")] == [2, 2, 2]
    rail.process("kill", process)
    ended = run("processes", "forward", process, "8000", "-q")
    text = f"error: {process} has ended. Nothing is forwarded. Its log has the outcome.\nnext: handrail processes\n"
    assert (ended.code, ended.err) == (1, text)


def test_in_the_network_of_the_machine_there_is_nothing_to_forward(run: Run, workspace: Path, state: Path) -> None:
    settings = Settings(sandbox=Sandbox(tier=1, least=1))
    rail = Handrail(workspace, mode="full", session="cli", state_dir=state, settings=settings)
    try:
        process = started(rail, "cat", ports=())
        done = run("processes", "forward", process, "8000", "-q")
        assert (done.code, len(done.err.splitlines())) == (1, 2)
        assert f"error: {process} has no network of its own" in done.err
    finally:
        rail.end_session()


def test_the_way_to_the_proxy_is_not_opened(run: Run, workspace: Path, state: Path) -> None:
    settings = Settings(sandbox=Sandbox(tier=2, least=2), network=NetworkSettings(allow=("example.org:443",)))
    rail = Handrail(workspace, mode="full", session="cli", state_dir=state, settings=settings)
    try:
        process = started(rail, "python3 -q -i", ports=())
        done = run("processes", "forward", process, str(PORT), "--to", "0", "-q")
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"error: Port {PORT} of {process} is its proxy to approved hosts, not its own port.")
    finally:
        rail.end_session()


@pytest.fixture
def somebody() -> Iterator[dict[str, Any]]:
    """How an ordinary user runs things, in a folder of theirs."""
    number = ordinary_number() if os.geteuid() == 0 else None
    if number is None or not python_for(number):
        pytest.skip("this user is one, or there is no Python for one")
    folder = Path(tempfile.mkdtemp(prefix="handrail-"))
    os.chown(folder, number, number)
    folders = [str(REPOSITORY / "src"), *(path for path in sys.path if "site-packages" in path)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "HANDRAIL_STATE_DIR": str(folder / "state")}
    environment |= {"PYTHONPATH": ":".join(folders), "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
    yield {"env": environment, "cwd": folder, "user": number, "group": number, "extra_groups": []}
    shutil.rmtree(folder)


def test_an_ordinary_user_reaches_their_own(somebody: dict[str, Any]) -> None:
    handrail = [python_for(somebody["user"]), "-m", "handrail"]
    (somebody["cwd"] / "work").mkdir()
    os.chown(somebody["cwd"] / "work", somebody["user"], somebody["user"])
    somebody["cwd"] /= "work"
    (somebody["cwd"] / "page.txt").write_text("the page\n")
    call = json.dumps({"command": "python3 -m http.server 8000", "background": True})
    begun = subprocess.run(
        [*handrail, "call", "exec", call, "--mode", "full", "--json"], capture_output=True, check=False, **somebody
    )
    result = json.loads(begun.stdout)
    process = result["data"]["sessionId"]
    try:
        assert result["meta"]["sandbox"]["tier"] == 2
        with forwarded([*handrail, "processes", "forward", process, "8000", "--to", "0"], **somebody) as (made, port):
            until(lambda: fetched(port, "/page.txt").endswith(b"\r\n\r\nthe page\n"))
            interrupted(made)
    finally:
        subprocess.run([*handrail, "processes", "remove", process], capture_output=True, check=True, **somebody)
