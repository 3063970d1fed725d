"""The proxy: carries what is listed, refuses the rest, and tells each attempt once."""

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from proxied import Proxied, Server, all_of, eventually, leading_to, serving

from handrail.sandbox.proxy import proxy, sockets
from handrail.sandbox.proxy.proxy import Attempt


def read_head(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data and (piece := connection.recv(65_536)):
        data += piece
    return data


def answer_once(connection: socket.socket) -> None:
    """Says back, in the body, all that it was sent."""
    head = read_head(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + head)


def echo(connection: socket.socket) -> None:
    while piece := connection.recv(65_536):
        connection.sendall(piece)


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Callable[..., Proxied]]:
    made: list[Proxied] = []

    def make(*entries: str, **options: object) -> Proxied:
        made.append(Proxied(tmp_path / f"proxy{len(made)}", *entries, **options))
        return made[-1]

    yield make
    for one in made:
        one.proxy.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(answer_once) as server:
        yield server


Make = Callable[..., Proxied]


def test_a_listed_address_is_asked_and_its_answer_carried(proxied: Make, server: Server) -> None:
    asked = proxied(f"127.0.0.1:{server.port}")
    said = asked.get(f"http://127.0.0.1:{server.port}/x")
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n".encode() in said
    assert asked.only_attempt() == Attempt("127.0.0.1", server.port, True, "")


def test_a_tunnel_carries_bytes_both_ways_until_both_sides_have_ended(proxied: Make) -> None:
    with serving(echo) as server:
        asked = proxied(f"127.0.0.1:{server.port}")
        with asked.connected() as connection:
            connection.sendall(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\nat once ".encode())
            established = b"HTTP/1.1 200 Connection established\r\n\r\n"
            assert connection.recv(len(established), socket.MSG_WAITALL) == established
            sent = bytes(range(256)) * 4000
            assert connection.recv(8, socket.MSG_WAITALL) == b"at once "
            connection.sendall(sent[:1000])
            assert connection.recv(1000, socket.MSG_WAITALL) == sent[:1000]
            connection.shutdown(socket.SHUT_WR)
            assert all_of(connection) == b""
        assert asked.only_attempt().allowed


def test_a_megabyte_comes_through_a_tunnel_to_a_reader_that_is_slow_to_begin(proxied: Make) -> None:
    sent = bytes(range(251)) * 20_000
    with serving(lambda connection: connection.sendall(sent)) as server:
        asked = proxied(f"127.0.0.1:{server.port}")
        said = asked.said(f"CONNECT 127.0.0.1:{server.port} HTTP/1.0\r\n\r\n".encode(), end=True)
    assert said.partition(b"\r\n\r\n")[2] == sent


def test_a_body_of_a_known_length_and_one_in_chunks_are_carried(proxied: Make) -> None:
    with serving(echo) as server:
        asked = proxied(f"127.0.0.1:{server.port}")
        start = f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
        for head, body in (
            (b"Content-Length: 300000", b"x" * 300_000),
            (b"Transfer-Encoding: chunked", b"30d40\r\n" + b"y" * 200_000 + b"\r\n0\r\n\r\n"),
        ):
            with asked.connected() as connection:
                connection.sendall(start + head + b"\r\n\r\n" + body)
                got = b""
                while not got.endswith(body):
                    got += connection.recv(65_536)
                assert got.count(b"\r\n\r\n" + body[:5]) == 1


def test_a_program_that_has_sent_everything_still_gets_its_answer(proxied: Make) -> None:
    def answer_at_the_end(connection: socket.socket) -> None:
        read_head(connection)
        assert connection.recv(1) == b""
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nlate")

    with serving(answer_at_the_end) as server:
        asked = proxied(f"127.0.0.1:{server.port}")
        url = f"127.0.0.1:{server.port}"
        said = asked.said(f"GET http://{url}/ HTTP/1.1\r\nHost: {url}\r\n\r\n".encode(), end=True)
    assert said.endswith(b"late")


def test_a_program_that_leaves_takes_the_connection_to_the_host_with_it(proxied: Make) -> None:
    ended: list[bool] = []

    def never_answer(connection: socket.socket) -> None:
        read_head(connection)
        ended.append(connection.recv(1) == b"")

    with serving(never_answer) as server:
        asked = proxied(f"127.0.0.1:{server.port}")
        with asked.connected() as connection:
            url = f"127.0.0.1:{server.port}"
            connection.sendall(f"GET http://{url}/ HTTP/1.1\r\nHost: {url}\r\n\r\n".encode())
            assert eventually(lambda: server.visits == 1)
        assert eventually(lambda: ended == [True])


def test_a_second_request_on_the_connection_reaches_nobody(proxied: Make) -> None:
    heard: list[bytes] = []

    def hear(connection: socket.socket) -> None:
        heard.append(read_head(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    with serving(hear) as server:
        asked = proxied(f"127.0.0.1:{server.port}")
        one = f"GET http://127.0.0.1:{server.port}/1 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
        other = "GET /2 HTTP/1.1\r\nHost: other.example\r\n\r\n"
        asked.said((one + other).encode())
    assert [b"/2" in head or b"other" in head for head in heard] == [False]


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "evil-example.org",
        "example.org.evil.test",
        "a.example.org",
        "xn--exmple-cua.org",
        "example.orgx",
    ],
)
def test_what_is_not_listed_is_refused_without_a_look_up(proxied: Make, host: str) -> None:
    def resolve(*_: object) -> list[str]:
        raise AssertionError("looked up")

    asked = proxied("example.org", resolve=resolve)
    said = asked.get(f"http://{host}/")
    assert said.startswith(f"HTTP/1.1 403 handrail: {host} is not listed\r\n".encode())
    assert said.endswith(f"\r\n\r\nhandrail: {host} is not listed\n".encode())
    assert asked.only_attempt() == Attempt(host, 80, False, f"{host} is not listed", "is not listed")


@pytest.mark.parametrize(
    ("authority", "reason"),
    [
        ("example.org.", "ends with a dot"),
        ("example.org\0.evil.test", "is not a name"),
        ("ex\xe4mple.org", "not ASCII"),
        ("example\uff0eorg", "not ASCII"),
        ("0x7f.0.0.1", "plain form"),
        ("0177.0.0.1", "plain form"),
        ("2130706433", "plain form"),
        ("127.1", "plain form"),
        ("[::ffff:127.0.0.1]", "IPv4 address written as"),
        ("[fe80::1%25lo]", "network card"),
        ("[::1", "not a port|not an address in brackets|no port"),
    ],
)
def test_other_spellings_of_hosts_are_refused_in_both_ways_to_ask(proxied: Make, authority: str, reason: str) -> None:
    asked = proxied("example.org", "127.0.0.1", "[::1]")
    for request in (f"GET http://{authority}/ HTTP/1.0\r\n\r\n", f"CONNECT {authority}:80 HTTP/1.0\r\n\r\n"):
        assert asked.said(request.encode()).startswith(b"HTTP/1.1 403 handrail: ")
    assert len(asked.attempts) == 2
    for attempt in asked.attempts:
        assert not attempt.allowed
        assert re.search(reason, attempt.reason)
        assert attempt.host.isprintable()
        assert attempt.host.isascii()


def test_a_tunnel_to_another_port_of_a_listed_host_is_refused(proxied: Make, server: Server) -> None:
    asked = proxied("127.0.0.1:1")
    said = asked.said(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n".encode())
    assert said.startswith(b"HTTP/1.1 403 ")
    assert asked.only_attempt().reason == f"127.0.0.1 is listed for port 1, not for {server.port}"
    assert server.visits == 0


def test_a_host_header_that_names_another_is_refused(proxied: Make, server: Server) -> None:
    asked = proxied(f"127.0.0.1:{server.port}")
    assert asked.get(f"http://127.0.0.1:{server.port}/", host="b.example").startswith(b"HTTP/1.1 400 ")
    attempt = asked.only_attempt()
    assert (attempt.host, attempt.port, attempt.allowed) == ("127.0.0.1", server.port, False)
    assert server.visits == 0


def test_a_listed_name_that_leads_to_a_private_address_is_refused_as_such(proxied: Make, server: Server) -> None:
    asked = proxied(f"rebound.example:{server.port}", resolve=leading_to("127.0.0.1"))
    said = asked.get(f"http://rebound.example:{server.port}/")
    assert said.startswith(b"HTTP/1.1 403 ")
    assert asked.only_attempt().reason == (
        f"rebound.example is listed, but it leads to 127.0.0.1, an address of this machine, which is not listed"
        f" as an address with port {server.port}"
    )
    assert server.visits == 0


def test_one_private_address_among_others_is_enough(proxied: Make) -> None:
    asked = proxied("mixed.example", resolve=lambda *_: ["8.8.8.8", "10.0.0.1"])
    assert asked.get("http://mixed.example/").startswith(b"HTTP/1.1 403 ")
    assert "10.0.0.1" in asked.only_attempt().reason


def test_a_name_is_looked_up_once_and_that_address_is_used(proxied: Make, server: Server) -> None:
    asked = proxied(
        f"once.example:{server.port}", f"127.0.0.1:{server.port}", resolve=leading_to("127.0.0.1", "127.9.9.9")
    )
    said = asked.get(f"http://once.example:{server.port}/")
    assert f"Host: once.example:{server.port}".encode() in said
    assert asked.only_attempt() == Attempt("once.example", server.port, True, "")


def test_the_next_address_is_tried_where_one_is_not_reached(proxied: Make, server: Server) -> None:
    addresses = ["127.0.0.9", "127.0.0.1"]
    asked = proxied(f"two.example:{server.port}", f"127.0.0.0/8:{server.port}", resolve=lambda *_: addresses)
    assert b"200 OK" in asked.get(f"http://two.example:{server.port}/")
    assert asked.only_attempt().allowed


def test_what_is_allowed_and_not_reached_is_told_as_such(proxied: Make) -> None:
    def resolve(host: str, _port: int) -> list[str]:
        if host == "gone.example":
            raise OSError("Name or service not known")
        return [] if host == "empty.example" else ["no address"]

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    asked = proxied(f"127.0.0.1:{port}", "gone.example", "empty.example", "odd.example", resolve=resolve)
    for url in (f"127.0.0.1:{port}", "gone.example", "empty.example", "odd.example"):
        assert asked.get(f"http://{url}/").startswith(b"HTTP/1.1 502 handrail: ")
    assert [attempt.allowed for attempt in asked.attempts] == [True] * 4
    assert "refused" in asked.attempts[0].reason
    assert "gone.example cannot be found (Name or service not known)" in asked.attempts[1].reason


def test_a_connection_that_says_nothing_is_no_attempt(proxied: Make) -> None:
    asked = proxied()
    assert asked.said(b"", end=True) == b""
    assert asked.attempts == []
    assert asked.said(b"\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert asked.only_attempt() == Attempt("", 0, False, "it is not an HTTP/1 request")


def test_a_head_that_is_too_long_or_breaks_off_is_refused(proxied: Make) -> None:
    asked = proxied()
    assert asked.said(b"GET http://a.example/" + b"x" * 20_000).startswith(b"HTTP/1.1 400 ")
    assert asked.said(b"GET http://a.example/ HTT", end=True).startswith(b"HTTP/1.1 400 ")
    assert [attempt.reason for attempt in asked.attempts] == [
        "its head is longer than 16 KB",
        "it ended inside its head",
    ]


def test_a_head_that_does_not_come_is_not_waited_for(proxied: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "_SECONDS_FOR_HEAD", 0.05)
    asked = proxied()
    with asked.connected() as connection:
        connection.sendall(b"GET http://a.example/ HTTP/1.1\r\n")
        assert all_of(connection).startswith(b"HTTP/1.1 400 handrail: its head did not arrive in time")
    assert len(asked.attempts) == 1


def test_a_tunnel_in_which_nothing_moves_is_ended(proxied: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_SECONDS_OF_SILENCE", 0.05)
    with serving(echo) as server:
        asked = proxied(f"127.0.0.1:{server.port}")
        with asked.connected() as connection:
            connection.sendall(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n".encode())
            assert all_of(connection) == b"HTTP/1.1 200 Connection established\r\n\r\n"


def test_nothing_is_sent_where_the_attempt_cannot_be_told(tmp_path: Path) -> None:
    def fail(_: Attempt) -> None:
        raise RuntimeError("the disk is full")

    heard: list[bytes] = []
    with serving(lambda connection: heard.append(read_head(connection))) as server:
        asked = Proxied(tmp_path, f"127.0.0.1:{server.port}", on_attempt=fail)
        try:
            said = asked.get(f"http://127.0.0.1:{server.port}/")
            assert b"502 handrail: the attempt could not be logged, so nothing was sent" in said
            assert asked.get("http://b.example/").startswith(b"HTTP/1.1 403 ")
        finally:
            asked.proxy.close()
    assert b"".join(heard) == b""


def test_an_answer_that_comes_before_the_body_was_read_is_carried(proxied: Make) -> None:
    def turn_away(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)

    with serving(turn_away) as server:
        asked = proxied(f"127.0.0.1:{server.port}")
        with asked.connected() as connection:
            url = f"127.0.0.1:{server.port}"
            connection.sendall(
                f"POST http://{url}/ HTTP/1.1\r\nHost: {url}\r\nContent-Length: 999999999\r\n\r\nx".encode()
            )
            assert all_of(connection).startswith(b"HTTP/1.1 413 ")
