"""Hosts and ports have one spelling, and others are refused with a reason."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.network.hosts import HostPort, InvalidHost, parse_host_port, render_untrusted


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("example.net:443", "example.net", 443),
        ("Example.NET:80", "example.net", 80),
        ("localhost:65535", "localhost", 65535),
        ("a-b.c1.xn--bcher-kva.example:1", "a-b.c1.xn--bcher-kva.example", 1),
        ("1.2.3.4.example:80", "1.2.3.4.example", 80),
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("[::1]:443", "::1", 443),
        ("[2001:db8::7]:443", "2001:db8::7", 443),
    ],
)
def test_a_host_in_its_plain_form_is_read(text: str, host: str, port: int) -> None:
    target = parse_host_port(text)
    assert isinstance(target, HostPort)
    assert (target.host, target.port, target.spelled) == (host, port, text.lower())


def test_an_address_is_told_from_a_name() -> None:
    assert parse_host_port("127.0.0.1:1") == HostPort("127.0.0.1", 1, IPv4Address("127.0.0.1"))
    assert parse_host_port("[::1]:1") == HostPort("::1", 1, IPv6Address("::1"))
    named = parse_host_port("a.example:1")
    assert isinstance(named, HostPort)
    assert (named.address, named.labels) == (None, ("a", "example"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("example.net", "no port"),
        ("", "no port"),
        ("[::1]", "no port"),
        (":443", "no host is named"),
        ("example.net:", "is not a port"),
        ("example.net:0", "is not a port"),
        ("example.net:65536", "is not a port"),
        ("example.net:0443", "is not a port"),
        ("example.net:+443", "is not a port"),
        ("example.net:4٣", "is not a port"),
        ("example.net:443 ", "is not a port"),
        ("example.net.:443", "ends with a dot"),
        (".:443", "ends with a dot"),
        ("index..org:443", "is not a name"),
        (".example.net:443", "is not a name"),
        ("-example.net:443", "is not a name"),
        ("index-.org:443", "is not a name"),
        ("py_pi.org:443", "is not a name"),
        ("example.net\0.evil.test:443", "is not a name"),
        ("example.net%00.evil.test:443", "is not a name"),
        ("example.net\n:443", "is not a name"),
        ("example.net :443", "is not a name"),
        ("user@example.net:443", "is not a name"),
        ("example.net/x:443", "is not a name"),
        ("http://example.net:443", "is not a name"),
        ("*.example.net:443", "is not a name"),
        ("::1:443", "is not a name"),
        ("a" * 64 + ".org:443", "is not a name"),
        (".".join(["a" * 60] * 5) + ":443", "longer than a name"),
        ("pypı.org:443", "not ASCII"),
        ("index。org:443", "not ASCII"),
        ("index．org:443", "not ASCII"),
        ("bücher.example:443", "not ASCII"),
        ("127.1:80", "plain form"),
        ("2130706433:80", "plain form"),
        ("0x7f000001:80", "plain form"),
        ("0x7f.0.0.1:80", "plain form"),
        ("127.0.0.0x1:80", "plain form"),
        ("0177.0.0.1:80", "plain form"),
        ("127.0.0.01:80", "plain form"),
        ("256.0.0.1:80", "plain form"),
        ("1.2.3.4.5:80", "plain form"),
        ("index.0x:80", "plain form"),
        ("[::1:80", "is not an address in brackets"),
        ("[::1]x:80", "is not an address in brackets"),
        ("[]:80", "is not an IPv6 address"),
        ("[127.0.0.1]:80", "is not an IPv6 address"),
        ("[[::1]]:80", "is not an IPv6 address"),
        ("[::1]]:80", "is not an IPv6 address"),
        ("[fe80::1%eth0]:80", "network card"),
        ("[fe80::1%25lo]:80", "network card"),
        ("[::ffff:127.0.0.1]:80", "IPv4 address written as"),
        ("[::ffff:7f00:1]:80", "IPv4 address written as"),
        ("[::127.0.0.1]:80", "IPv4 address written as"),
        ("[0:0:0:0:0:0:0:1]:80", "plain form, which is ::1"),
        ("[2001:DB8::7]:80", "plain form, which is 2001:db8::7"),
        ("[2001:db8:0:0::7]:80", "plain form"),
    ],
)
def test_everything_else_is_refused_with_a_reason(text: str, reason: str) -> None:
    refused = parse_host_port(text)
    assert isinstance(refused, InvalidHost)
    assert reason in refused.reason
    assert refused.host.isprintable()


def test_what_is_refused_keeps_its_port_where_it_has_one() -> None:
    assert parse_host_port("example.net.:443")[2] == 443
    assert parse_host_port("example.net:x")[2] == 0


def test_a_text_is_shown_short_and_safe() -> None:
    assert render_untrusted("a\0b\x1b[1mé") == "a\\u{0}b\\u{1b}[1m\\u{e9}"
    assert len(render_untrusted("x" * 1000)) == 120


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60) | st.from_regex(r"[a-f0-9x.:\[\]%-]{1,30}:80"))
def test_any_text_is_read_to_one_spelling_or_refused(text: str) -> None:
    target = parse_host_port(text)
    assert target.host.isprintable()
    assert target.host.isascii() or target.host.endswith("…")
    if isinstance(target, HostPort):
        assert parse_host_port(target.spelled) == target
        assert target.spelled == text.lower()
