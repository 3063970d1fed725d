"""The proxy's life: who may connect, how many at once, and that closing it leaves nothing."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import warnings
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from proxied import PATIENCE, Proxied, all_of, eventually, nothing_listens_at, open_descriptors, serving

from handrail.sandbox.proxy.proxy import Attempt


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Proxied]:
    one = Proxied(tmp_path / "proxy")
    yield one
    one.proxy.close()


def proxy_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "handrail-proxy"]


def hold(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass


def test_only_this_user_can_connect(asked: Proxied) -> None:
    status = os.stat(asked.proxy.path)
    assert stat.S_ISSOCK(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(asked.proxy.path)).st_mode) == 0o700


def test_a_path_may_be_longer_than_the_name_of_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    one = Proxied(folder)
    assert stat.S_ISSOCK(os.stat(one.proxy.path).st_mode)
    assert stat.S_IMODE(os.stat(one.proxy.path).st_mode) == 0o600
    held = os.open(folder, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(f"/proc/self/fd/{held}/proxy.sock")
        connection.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        assert all_of(connection).startswith(b"HTTP/1.1 403 ")
    os.close(held)
    one.proxy.close()
    assert os.listdir(folder) == []


def test_a_file_in_the_place_of_the_socket_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "proxy.sock").write_text("somebody's")
    before = open_descriptors()
    with pytest.raises(OSError, match="in use"):
        Proxied(tmp_path)
    assert (tmp_path / "proxy.sock").read_text() == "somebody's"
    assert open_descriptors() == before


def test_closing_ends_every_connection_and_leaves_no_thread_descriptor_or_file(tmp_path: Path) -> None:
    before = open_descriptors()
    with serving(hold) as server:
        one = Proxied(tmp_path / "proxy", f"127.0.0.1:{server.port}")
        with one.connected() as silent, one.connected() as halfway, one.connected() as tunnel:
            halfway.sendall(b"GET http://a.exam")
            tunnel.sendall(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n".encode())
            assert tunnel.recv(100)
            assert eventually(lambda: len(proxy_threads()) == 4)
            one.proxy.close()
            one.proxy.close()
            assert proxy_threads() == []
            assert [all_of(connection) for connection in (silent, halfway, tunnel)] == [b""] * 3
        assert nothing_listens_at(one.proxy.path)
        assert os.listdir(tmp_path / "proxy") == []
    assert open_descriptors() == before
    assert one.only_attempt().allowed


def test_closing_does_not_wait_for_the_resolver(tmp_path: Path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def resolve(*_: object) -> list[str]:
        asked.set()
        go_on.wait(PATIENCE)
        return ["127.0.0.1"]

    one = Proxied(tmp_path, "slow.example", resolve=resolve)
    with one.connected() as connection:
        connection.sendall(b"CONNECT slow.example:443 HTTP/1.1\r\n\r\n")
        assert asked.wait(PATIENCE)
        one.proxy.close()
        assert all_of(connection) == b""
    assert proxy_threads() == []
    go_on.set()
    assert eventually(lambda: not any(thread.name == "handrail-lookup" for thread in threading.enumerate()))
    assert one.attempts == []


def test_it_can_be_closed_by_whoever_is_told_of_an_attempt(tmp_path: Path) -> None:
    one = Proxied(tmp_path, on_attempt=lambda _: one.proxy.close())
    with one.connected() as connection:
        connection.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        all_of(connection)
    assert eventually(lambda: proxy_threads() == [])
    assert nothing_listens_at(one.proxy.path)


def test_no_more_than_sixty_four_are_served_at_once_and_the_next_when_one_leaves(asked: Proxied) -> None:
    waiting = [asked.connected() for _ in range(64)]
    try:
        for connection in waiting:
            connection.sendall(b"G")
        assert eventually(lambda: len(proxy_threads()) == 65)
        with asked.connected() as next_one:
            next_one.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
            next_one.setblocking(False)
            with pytest.raises(BlockingIOError):
                next_one.recv(1)
            assert asked.attempts == []
            next_one.settimeout(PATIENCE)
            waiting.pop().close()
            assert next_one.recv(12) == b"HTTP/1.1 403"
    finally:
        for connection in waiting:
            connection.close()
    assert len(proxy_threads()) <= 65


def test_a_forked_process_that_closes_it_ends_nothing_of_its_parents(tmp_path: Path) -> None:
    with serving(hold) as server:
        one = Proxied(tmp_path, f"127.0.0.1:{server.port}")
        with one.connected() as tunnel:
            tunnel.sendall(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n".encode())
            assert tunnel.recv(100).startswith(b"HTTP/1.1 200 ")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # there are threads: that is the point
                child = os.fork()
            if child == 0:
                one.proxy.close()
                one.proxy.close()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert one.said(b"CONNECT b.example:443 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 ")
            # One that lives on, and holds a copy of everything, keeps nothing open.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                other = os.fork()
            if other == 0:
                signal.pause()
            one.proxy.close()
            try:
                assert all_of(tunnel) == b""
                assert proxy_threads() == []
            finally:
                os.kill(other, signal.SIGKILL)
                os.waitpid(other, 0)


def hand_over(asked: Proxied, *descriptors: int) -> bytes:
    with asked.connected() as way:
        numbers = array("i", descriptors)
        way.sendmsg([b"listen"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
        way.shutdown(socket.SHUT_WR)
        return way.recv(1)


def test_a_listening_socket_can_be_handed_over_once_and_is_served_then(asked: Proxied) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first:
        assert hand_over(asked, first.fileno()) == b"+"
        port = first.getsockname()[1]
        first.close()
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            connection.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
            assert all_of(connection).startswith(b"HTTP/1.1 403 ")
        assert nothing_listens_at(asked.proxy.path)
        assert asked.attempts[0] == Attempt("a.example", 443, False, "a.example is not listed", "is not listed")
        asked.proxy.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), PATIENCE)


def test_other_descriptors_are_not_taken_and_not_kept(asked: Proxied, tmp_path: Path) -> None:
    with (
        socket.socket(socket.AF_INET) as silent,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        socket.socket(socket.AF_UNIX) as named,
        socket.create_server(("0.0.0.0", 0)) as wide,
        open(tmp_path / "file", "w") as file,
    ):
        named.bind(str(tmp_path / "named"))
        named.listen()
        before = open_descriptors()
        for one in (silent, datagrams, named, wide, file):
            assert hand_over(asked, one.fileno(), one.fileno()) != b"+"
        assert eventually(lambda: open_descriptors() == before)


def test_it_is_light_enough_for_a_process_that_is_nothing_else() -> None:
    told = "import sys; import handrail.sandbox.proxy.proxy; print('msgspec' in sys.modules, 'asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split() == ["False", "False"]
