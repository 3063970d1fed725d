"""Allowlists of hosts: entries, judgements, errors."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.network.allowlist import Allowlist, parse_host_pattern
from handrail.policy.network.hosts import HostPort, parse_host_port


def said(entries: str, text: str) -> str | None:
    target = parse_host_port(text)
    assert isinstance(target, HostPort)
    problem = Allowlist.from_entries(entries.split()).judge(target)
    return f"{target.host} {problem}" if problem else None


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ("example.net", "example.net:443"),
        ("example.net", "example.net:80"),
        ("PyPI.org:443", "pypi.ORG:443"),
        ("example.net:443,8443", "example.net:8443"),
        ("a.example:1 a.example:2", "a.example:2"),
        ("*.example.org", "a.example.org:443"),
        ("*.example.org", "c.b.a.example.org:443"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("10.0.0.0/8:5432", "10.9.8.7:5432"),
        ("[::1]:443", "[::1]:443"),
        ("[fd00::/8]:443", "[fd12::7]:443"),
    ],
)
def test_a_listed_host_is_listed_whatever_its_case(entries: str, text: str) -> None:
    assert said(entries, text) is None


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ("example.org", "evil-example.org:443"),
        ("example.org", "example.org.evil.test:443"),
        ("example.org", "a.example.org:443"),
        ("example.org", "example.orgx:443"),
        ("example.org", "xample.org:443"),
        ("example.org", "org:443"),
        ("*.example.org", "example.org:443"),
        ("*.example.org", "evilexample.org:443"),
        ("*.example.org", "a.example.org.evil.test:443"),
        ("example.org", "xn--exmple-cua.org:443"),
        ("example.org", "127.0.0.1:443"),
        ("127.0.0.1", "127.0.0.2:80"),
        ("10.0.0.0/8", "11.0.0.1:80"),
        ("10.0.0.0/8", "[fd00::1]:80"),
        ("[::1]", "127.0.0.1:80"),
        ("127.0.0.1", "127.0.0.1.example:80"),
        ("", "example.org:443"),
    ],
)
def test_what_only_looks_like_it_is_not(entries: str, text: str) -> None:
    target = parse_host_port(text)
    assert said(entries, text) == f"{target.host} is not listed"


def test_another_port_is_said_to_be_the_wrong_one() -> None:
    assert (
        said("example.net:8443 example.net:443", "example.net:22")
        == "example.net is listed for port 443, 8443, not for 22"
    )


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("", "not a host"),
        (":443", "not a host"),
        ("https://example.net", "URL"),
        ("me@example.net", "URL"),
        ("example.net/simple", "is not an address"),
        ("example.net:", "a port is"),
        ("example.net:x", "a port is"),
        ("example.net:443,443", "each once"),
        ("example.net:443,", "a port is"),
        ("example.net:99999", "a port is"),
        ("::1", "brackets"),
        ("::1:443", "brackets"),
        ("[::1]443", "brackets"),
        ("*", "a star"),
        ("**.example.org", "a star"),
        ("*example.org", "a star"),
        ("*.*.example.org", "is not a name"),
        ("a.*.example.org", "is not a name"),
        ("*.org", "it would allow the domains of many owners"),
        ("*.10.0.0.1", "an address has no subdomains"),
        ("bücher.example", "xn--"),
        ("example.net.", "ends with a dot"),
        ("127.1", "plain form"),
        ("localhost:8080", "by its address"),
        ("app.localhost", "by its address"),
        ("10.0.0.1/8", "bits set beyond"),
        ("10.0.0.0/33", "more bits"),
        ("10.0.0.0/08", "is not a number of bits"),
        ("10.0.0.0/255.0.0.0", "is not a number of bits"),
        ("example.org/8", "is not an address"),
        ("0.0.0.0/0", "too many addresses"),
        ("[::/0]", "too many addresses"),
        ("[fd00::]/8", "brackets"),
        ("[FD00::/8]", "plain form"),
        ("[::ffff:10.0.0.0/104]", "IPv4"),
        ("example.net\n", "is not a name"),
    ],
)
def test_what_is_no_entry_is_refused_in_words_that_name_it_and_the_forms(entry: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        Allowlist.from_entries(("example.net", entry))
    assert "cannot be listed" in str(caught.value)
    assert "*.example.org" in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.0.0.5", "100.64.0.1", "127.0.0.53", "169.254.169.254", "172.31.255.255", "192.168.1.1"),
        *("192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1"),
        *("2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "fc00::1", "fd12::1", "fe80::1", "fec0::1", "ff02::1"),
        *("4000::1", "5f00::1"),
    ],
)
def test_a_listed_name_leads_to_no_private_or_special_address(address: str) -> None:
    reason = Allowlist.from_entries(["example.net", "0.0.0.0/8:1"]).judge_address(ip_address(address), 443)
    assert reason is not None
    assert reason.startswith(f"it leads to {ip_address(address)}, a")


@pytest.mark.parametrize("address", ["8.8.8.8", "151.101.0.223", "2a04:4e42::223", "2606:4700::1111"])
def test_a_listed_name_leads_to_any_address_out_on_the_internet(address: str) -> None:
    assert Allowlist().judge_address(ip_address(address), 443) is None


def test_a_private_address_is_reached_by_a_name_where_it_is_listed_itself_with_that_port() -> None:
    listed = Allowlist.from_entries(["git.example", "10.0.0.0/8:443"])
    assert listed.judge_address(ip_address("10.1.2.3"), 443) is None
    assert "which is not listed as an address with port 80" in (listed.judge_address(ip_address("10.1.2.3"), 80) or "")


@pytest.mark.parametrize(
    ("outer", "inner", "holds"),
    [
        ("example.net", "example.net:443", True),
        ("example.net:443", "example.net", False),
        ("example.net", "a.example.net", False),
        ("*.example.org", "a.example.org", True),
        ("*.example.org", "*.a.example.org", True),
        ("*.example.org", "*.example.org:80", True),
        ("*.example.org", "example.org", False),
        ("*.a.example.org", "*.example.org", False),
        ("a.example.org", "*.a.example.org", False),
        ("a.example.org", "*.example.org", False),
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("10.1.0.0/16", "10.0.0.0/8", False),
        ("10.0.0.0/8", "[fd00::/8]", False),
        ("[fd00::/8]", "[fd00::1]", True),
        ("[fd00::/8]", "10.0.0.1", False),
        ("10.0.0.0/8", "example.net", False),
        ("example.net", "10.0.0.1", False),
    ],
)
def test_an_entry_holds_another_where_it_lists_all_of_it(outer: str, inner: str, holds: bool) -> None:
    assert Allowlist.from_entries([outer]).holds(parse_host_pattern(inner)) is holds


@pytest.mark.parametrize(
    ("entries", "own"),
    [
        ("example.net", ("localhost", "127.0.0.1", "::1")),
        ("127.0.0.0/8:80", ("localhost", "::1")),
        ("127.0.0.1 [::1]:1", ("localhost",)),
    ],
)
def test_loopback_is_the_commands_own_where_it_is_not_listed(entries: str, own: tuple[str, ...]) -> None:
    assert Allowlist.from_entries(entries.split()).private_loopback() == own


def test_a_list_is_empty_or_not() -> None:
    assert not Allowlist()
    assert Allowlist.from_entries(["example.net"])


LABEL = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,5}[a-z0-9])?", fullmatch=True)


@given(st.lists(LABEL, min_size=2, max_size=4), st.text("abc.-", max_size=12), st.text("abc.-", max_size=12))
def test_a_name_lists_itself_and_no_other_however_it_is_continued(labels: list[str], front: str, back: str) -> None:
    name = ".".join([*labels, "example"])
    target = parse_host_port(f"{front}{name}{back}:443")
    if isinstance(target, HostPort):
        listed = Allowlist.from_entries([name]).judge(target) is None
        assert listed == (target.host == name)
        below = Allowlist.from_entries([f"*.{name}"]).judge(target) is None
        assert below == target.host.endswith(f".{name}")
