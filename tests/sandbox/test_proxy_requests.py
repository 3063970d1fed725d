"""Requests to the proxy: what is read of them, what is passed on, what is refused as it could be read in two ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.network.hosts import HostPort, InvalidHost
from handrail.sandbox.proxy.http import MalformedError, build_body, build_forwarded_head, parse_request


def passed_on(text: str) -> str:
    request = parse_request(text.encode("latin-1"))
    assert isinstance(request.target, HostPort)
    return build_forwarded_head(request, request.target).decode("latin-1")


@pytest.mark.parametrize(
    ("text", "host", "port", "path"),
    [
        ("GET http://a.example/x?y=z HTTP/1.1\r\nHost: a.example", "a.example", 80, "/x?y=z"),
        ("GET http://A.Example HTTP/1.1\r\nhost: a.EXAMPLE:80", "a.example", 80, "/"),
        ("GET HTTP://a.example?q HTTP/1.1\r\nHost: a.example", "a.example", 80, "/?q"),
        ("GET http://a.example:8080/ HTTP/1.0", "a.example", 8080, "/"),
        ("GET http://[::1]:8080/ HTTP/1.1\r\nHost: [::1]:8080", "::1", 8080, "/"),
        ("GET http://[::1]/ HTTP/1.1\r\nHost: [::1]", "::1", 80, "/"),
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443", "a.example", 443, ""),
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example", "a.example", 443, ""),
        ("CONNECT a.example:443 HTTP/1.0", "a.example", 443, ""),
        ("CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 0", "a.example", 443, ""),
    ],
)
def test_both_ways_to_ask_a_proxy_are_read(text: str, host: str, port: int, path: str) -> None:
    request = parse_request(text.encode())
    assert isinstance(request.target, HostPort)
    assert (request.target.host, request.target.port, request.path) == (host, port, path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not an HTTP/1 request"),
        ("\x16\x03\x01\x02\x00\x01", "not an HTTP/1 request"),
        ("GET http://a.example/", "not an HTTP/1 request"),
        ("GET http://a.example/ HTTP/2", "not an HTTP/1 request"),
        ("GET http://a.example/ HTTP/1.2", "not an HTTP/1 request"),
        ("GET  http://a.example/ HTTP/1.1", "not an HTTP/1 request"),
        ("GET http://a.example/ x HTTP/1.1", "not an HTTP/1 request"),
        ("GET\thttp://a.example/\tHTTP/1.1", "not an HTTP/1 request"),
        ("G(T http://a.example/ HTTP/1.1", "not an HTTP/1 request"),
        ("GET / HTTP/1.1\r\nHost: a.example", "names no host"),
        ("OPTIONS * HTTP/1.1\r\nHost: a.example", "names no host"),
        ("GET a.example:80 HTTP/1.1\r\nHost: a.example", "names no host"),
        ("GET //a.example/ HTTP/1.1\r\nHost: a.example", "names no host"),
        ("connect a.example:443 HTTP/1.1", "names no host"),
        ("GET http://a.example/#x HTTP/1.1\r\nHost: a.example", "names no host"),
        ("GET https://a.example/ HTTP/1.1\r\nHost: a.example", "only http://"),
        ("GET ftp://a.example/ HTTP/1.1\r\nHost: a.example", "only http://"),
        ("GET http://me:pw@a.example/ HTTP/1.1\r\nHost: a.example", "user name"),
        ("GET http://b.example@a.example/ HTTP/1.1\r\nHost: a.example", "user name"),
        ("GET http://a.example/\x00 HTTP/1.1\r\nHost: a.example", "its address has an invalid character"),
        ("GET http://a.example/\xe9 HTTP/1.1\r\nHost: a.example", "its address has an invalid character"),
        ("GET http://a.example/ HTTP/1.1", "no Host header"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: b.example", "Host header"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example:81", "Host header"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example.", "Host header"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: ", "Host header"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example, b.example", "Host header"),
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443", "Host header"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example", "more than once"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nhost: b.example", "more than once"),
        ("GET http://a.example/ HTTP/1.1\r\nHost : a.example", "a header is malformed"),
        ("GET http://a.example/ HTTP/1.1\r\n Host: a.example", "a header is malformed"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: 1\r\n 2", "continues in the next line"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: \x00", "a header is malformed"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n: x", "a header is malformed"),
        ("GET http://a.example/ HTTP/1.1\nHost: a.example", "one of its lines has a wrong line end"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\nX: 1", "one of its lines has a wrong line end"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\rX: 1", "one of its lines has a wrong line end"),
        ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nContent-Length: 1", "than once"),
        ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: +1", "not a number"),
        ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1, 1", "not a number"),
        (
            "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            "ambiguous",
        ),
        ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked", "ambiguous"),
        ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: xchunked", "ambiguous"),
        ("POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked", "ambiguous"),
        ("CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 5", "no body"),
        ("CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked", "no body"),
    ],
)
def test_what_is_no_request_or_could_be_two_is_refused(text: str, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason.replace("(", "\\(")) as caught:
        parse_request(text.encode("latin-1"))
    assert caught.value.named.isprintable()


@pytest.mark.parametrize(
    ("first", "named"),
    [
        ("GET https://me:secret@a.example/secret?secret HTTP/1.1", "a.example"),
        ("GET http://a.example/secret HTTP/3", "a.example"),
        ("GET http://a.example?secret#secret", "a.example"),
        ("CONNECT me:secret@a.example:443 HTTP/9", "a.example:443"),
        ("GET /secret?secret HTTP/1.1", ""),
        ("AUTH secret", ""),
        ("secret", ""),
        ("\x16\x03secret \x01 secret", ""),
    ],
)
def test_what_is_told_of_a_wrong_request_is_no_more_than_its_host(first: str, named: str) -> None:
    for text in (first, f"{first}\r\nX: 1\r\n wrong", f"{first}\nX: 1"):
        with pytest.raises(MalformedError) as caught:
            parse_request(text.encode("latin-1"))
        assert caught.value.named == named
        assert "secret" not in caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        f"GET http://a.example/ HTTP/1.1\r\nX:{' ' * 16_000}\x01",
        f"GET http://a.example/ HTTP/1.1\r\nX: {' x' * 8_000}\x01",
        f"GET http://{':' * 16_000}] HTTP/1.1\r\nX: 1",
        f"GET http://a.example/ HTTP/1.1\r\nHost: {':' * 16_000}]",
    ],
    ids=["blanks", "words", "url", "host"],
)
def test_no_head_takes_longer_the_more_ways_there_are_to_read_it(text: str) -> None:
    """While one is read, nothing else of the process moves: in hours, if they were tried one by one."""
    with pytest.raises(MalformedError):
        parse_request(text.encode("latin-1"))


def test_a_host_that_cannot_be_listed_is_told_with_its_reason() -> None:
    request = parse_request(b"CONNECT example.net.:443 HTTP/1.1")
    assert request.target == InvalidHost("example.net.", "example.net. ends with a dot", 443)
    dotless = parse_request(b"GET http:///x HTTP/1.1\r\nHost: x").target
    assert isinstance(dotless, InvalidHost)
    assert dotless.reason == "no host is named"


def test_the_server_gets_one_request_on_a_connection_that_ends_with_it() -> None:
    told = passed_on(
        "POST http://a.example:8080/x HTTP/1.1\r\nHost: a.example:8080\r\nConnection: keep-alive, X-Mine\r\n"
        "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic abc\r\nX-Mine: 1\r\nTE: trailers\r\n"
        "Upgrade: h2c\r\nX-Forwarded-Host: b.example\r\nContent-Length: 2\r\nX-Yours: caf\xe9"
    )
    assert told == (
        "POST /x HTTP/1.1\r\nHost: a.example:8080\r\nX-Yours: caf\xe9\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
    )


def test_a_server_is_named_without_the_port_of_http_and_with_any_other() -> None:
    assert "\r\nHost: a.example\r\n" in passed_on("GET http://a.example:80/ HTTP/1.1\r\nHost: a.example:80")
    assert "\r\nHost: [::1]:81\r\n" in passed_on("GET http://[::1]:81/ HTTP/1.0")


def test_a_body_in_chunks_stays_one() -> None:
    told = passed_on("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: Chunked")
    assert told.endswith("\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")


def body(head: str, *pieces: bytes) -> tuple[bytes, bool]:
    request = parse_request(f"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{head}".encode())
    taking = build_body(request)
    return b"".join(taking.feed(piece) for piece in pieces), taking.done


def test_no_more_is_passed_on_than_the_length_says() -> None:
    assert body("Content-Length: 5", b"hel", b"loGET http://b") == (b"hello", True)
    assert body("Content-Length: 5", b"hel") == (b"hel", False)
    assert build_body(parse_request(b"GET http://a.example/ HTTP/1.0")).done


def test_chunks_are_written_anew_without_extensions_and_trailers() -> None:
    sent = b"5;x=y\r\nhello\r\n00A\r\n0123456789\r\n0\r\nX: 1\r\n\r\nGET http://b.example/"
    assert body("Transfer-Encoding: chunked", sent) == (b"5\r\nhello\r\na\r\n0123456789\r\n0\r\n\r\n", True)


@pytest.mark.parametrize(
    "sent",
    [
        *(b"x\r\n", b"-1\r\n", b"0x5\r\nhello\r\n", b"5\nhello\r\n", b"5\r\nhelloX\r\n", b"\r\n"),
        *(b"f" * 17 + b"\r\n", b"0\r\n" + b"x" * 5000, b"1" * 5000),
    ],
    ids=lambda sent: repr(sent[:12]),
)
def test_chunks_that_could_be_read_in_two_ways_break_off(sent: bytes) -> None:
    with pytest.raises(MalformedError):
        body("Transfer-Encoding: chunked", sent)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.data())
def test_chunks_come_through_wherever_they_are_cut(chunks: list[bytes], data: st.DataObject) -> None:
    sent = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    pieces = [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    assert body("Transfer-Encoding: chunked", *pieces) == (sent, True)


@given(
    st.binary(max_size=200)
    | st.text(alphabet=st.characters(codec="latin-1"), max_size=80).map(
        lambda text: f"GET http://{text} HTTP/1.1\r\nHost: a.example".encode("latin-1")
    )
)
def test_any_bytes_are_a_request_or_refused_in_words(head: bytes) -> None:
    try:
        request = parse_request(head)
    except MalformedError as error:
        said = (error.reason, error.named)
    else:
        said = (request.target.host, "")
        assert request.path.startswith("/") or request.is_tunnel
    assert all(text.isprintable() for text in said)


@given(st.text("abc.:[]@/-\r\n \0", max_size=30))
def test_whatever_is_passed_on_is_one_head(text: str) -> None:
    try:
        request = parse_request(f"GET http://a.example/{text} HTTP/1.1\r\nHost: a.example".encode())
    except MalformedError:
        return
    if isinstance(request.target, HostPort):
        told = build_forwarded_head(request, request.target)
        assert told.count(b"\r\n\r\n") == 1
        assert told.split(b"\r\n")[1].startswith(b"Host: ")
