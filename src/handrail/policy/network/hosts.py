"""Hosts in one spelling, so that they can be compared.

Programs read unusual spellings differently, and that is how allowlists are bypassed: a NUL that ends a name, a dot at
the end, an address in octal. So a name is ASCII letters, digits and hyphens between dots, in lower case, and an
address has its standard form. Everything else is refused.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import NamedTuple

from handrail.protocol.text import truncate

Address = IPv4Address | IPv6Address

_MAX_NAME_CHARS = 253
_MAX_LABEL_CHARS = 63
_MAX_SHOWN_CHARS = 120
_MAX_PORT = 65_535
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")


class HostPort(NamedTuple):
    host: str
    """A name in lower case, or an address."""
    port: int
    address: Address | None = None
    """None if the host is a name."""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.host.split("."))

    @property
    def spelled(self) -> str:
        """`example.org:443`, `[::1]:443`."""
        return f"[{self.host}]:{self.port}" if isinstance(self.address, IPv6Address) else f"{self.host}:{self.port}"


class InvalidHost(NamedTuple):
    """A text that is no host in its one spelling."""

    host: str
    """The text, safe to show."""
    reason: str
    port: int = 0
    """0 if unknown."""


def parse_host_port(text: str) -> HostPort | InvalidHost:
    """Parse `host:port`, `1.2.3.4:port` or `[::1]:port`."""
    host, colon, digits = text.rpartition(":")
    if not colon or digits.endswith("]"):
        return InvalidHost(render_untrusted(text), "no port is named")
    port = parse_port(digits)
    if port is None:
        return InvalidHost(render_untrusted(host), f"{render_untrusted(digits)} is not a port")
    try:
        return parse_host(host, port)
    except ValueError as error:
        return InvalidHost(render_untrusted(host), str(error), port)


def parse_host(text: str, port: int) -> HostPort:
    """Parse a host. Raises ValueError with the reason."""
    if text.startswith("["):
        if not text.endswith("]"):
            raise ValueError(f"{render_untrusted(text)} is not an address in brackets")
        address: Address | None = parse_plain_ipv6(text[1:-1])
        return HostPort(str(address), port, address)
    labels = _split_labels(text)
    address = _parse_ipv4(text) if _NUMBER.fullmatch(labels[-1]) else None
    return HostPort(".".join(labels), port, address)


def parse_port(digits: str) -> int | None:
    """A port in plain digits, or None."""
    return int(digits) if _PORT.fullmatch(digits) and int(digits) <= _MAX_PORT else None


def render_untrusted(text: str) -> str:
    """An untrusted text, safe to show: one short line of printable ASCII."""
    safe = "".join(one if one.isascii() and one.isprintable() else f"\\u{{{ord(one):x}}}" for one in text[:300])
    return truncate(safe, _MAX_SHOWN_CHARS)


def parse_plain_ipv6(text: str) -> IPv6Address:
    """Parse an IPv6 address in the form of RFC 5952. Raises ValueError with the reason."""
    if "%" in text:
        raise ValueError(f"{render_untrusted(text)} names a network card, which is not allowed")
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise ValueError(f"{render_untrusted(text)} is not an IPv6 address") from None
    above = int(address) >> 32
    if above == 0xFFFF or (above == 0 and int(address) > 1):  # mapped, or the older compatible form
        raise ValueError(f"{render_untrusted(text)} is an IPv4 address written as an IPv6 one: write the IPv4 address")
    if str(address) != text:
        raise ValueError(f"{render_untrusted(text)} is not in its plain form, which is {address}")
    return address


def _split_labels(text: str) -> list[str]:
    if not text:
        raise ValueError("no host is named")
    if not text.isascii():
        raise ValueError(f"{render_untrusted(text)} is not ASCII: names in other scripts are written with xn--")
    if text.endswith("."):
        raise ValueError(f"{render_untrusted(text)} ends with a dot")
    if len(text) > _MAX_NAME_CHARS:
        raise ValueError(f"{render_untrusted(text)} is longer than a name can be")
    labels = text.lower().split(".")
    for label in labels:
        if not _LABEL.fullmatch(label) or len(label) > _MAX_LABEL_CHARS:
            raise ValueError(
                f"{render_untrusted(text)} is not a name: ASCII letters, digits and hyphens between single dots"
            )
    return labels


def _parse_ipv4(text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except AddressValueError:
        raise ValueError(
            f"{render_untrusted(text)} is not an IPv4 address in its plain form, such as 192.0.2.7"
        ) from None


# The registries of special-purpose addresses. Python's own table differs between versions.
_SPECIAL_IPV4 = tuple(
    (IPv4Network(block), kind)
    for block, kind in (
        ("0.0.0.0/8", "an address of this machine"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a shared address (carrier-grade NAT)"),
        ("127.0.0.0/8", "an address of this machine"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.31.196.0/24", "a reserved address"),
        ("192.52.193.0/24", "a reserved address"),
        ("192.88.99.0/24", "a 6to4 relay address"),
        ("192.168.0.0/16", "a private address"),
        ("192.175.48.0/24", "a reserved address"),
        ("198.18.0.0/15", "a benchmarking address"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_SPECIAL_IPV6 = tuple(
    (IPv6Network(block), kind)
    for block, kind in (
        ("::/127", "an address of this machine"),
        ("::/96", "an IPv4 address written as an IPv6 one"),
        ("::ffff:0:0/96", "an IPv4 address written as an IPv6 one"),
        ("64:ff9b::/96", "an IPv4 address behind NAT64"),
        ("64:ff9b:1::/48", "an IPv4 address behind NAT64"),
        ("2001::/23", "a tunnel or protocol address"),
        ("2001:db8::/32", "a documentation address"),
        ("2002::/16", "an IPv4 address in a tunnel"),
        ("2620:4f:8000::/48", "a reserved address"),
        ("3fff::/20", "a documentation address"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private address"),
        ("ff00::/8", "a multicast address"),
    )
)


def describe_address_range(address: Address) -> str | None:
    """`a private address` and the like. None for a public address."""
    if isinstance(address, IPv6Address):
        kind = next((kind for block, kind in _SPECIAL_IPV6 if address in block), None)
        return kind or (None if address in _GLOBAL_IPV6 else "a reserved address")
    return next((kind for block, kind in _SPECIAL_IPV4 if address in block), None)


_PROXIED_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
"""Schemes that an http proxy carries, with their default ports."""
_OTHER_PORTS = {
    "ssh": 22, "git": 9418, "ftp": 21, "ftps": 990, "sftp": 22, "scp": 22, "rsync": 873, "svn": 3690, "telnet": 23,
}  # fmt: skip
_LOCAL_SCHEMES = frozenset({"file", "data", "npm", "jsr", "workspace", "link", "portal", "unix"})
_URL = re.compile(
    r"(?:[\w.\[\],-]+\s*[=@]\s*)?"  # name=URL, name @ URL
    r"(?:(?:git|hg|bzr|svn|sparse|registry)\+)?([A-Za-z][A-Za-z0-9.-]*)(?:\+(ssh))?://([^/?#\\]*)"
)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:]*)(?::([0-9]*))?")
_PLAIN_URL = re.compile(r"(?:https?://)?([A-Za-z0-9.:\[\]-]+)(?:/[!-\[\]-~]*)?")
"""Without a user, and with no backslash. Programs disagree about where their host ends."""
_UNSPECIFIED = IPv4Address("0.0.0.0")  # noqa: S104  nothing is bound to it
_SSH_ADDRESS = re.compile(r"(?:[\w.+-]+@)?(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):(?![/\\]{2})")
"""`git@example.org:shop.git`. With a slash before the colon it is a path."""


def is_loopback_address(address: Address) -> bool:
    """Whether connections to it stay in the network of the program: 127.0.0.0/8, 0.0.0.0 and ::1."""
    return address.is_loopback or address == _UNSPECIFIED


def is_loopback_url(word: str) -> bool:
    """Whether every program reads a word as an http address of a loopback host: `localhost:8000/index.html`."""
    match = _PLAIN_URL.fullmatch(word)
    return match is not None and _mention_host(match[1], _PROXIED_PORTS["http"]).is_loopback


class HostMention(NamedTuple):
    """A host that a word names, or why approval cannot open it."""

    host: str = ""
    """`example.org:443`."""
    unreachable: str = ""
    """`example.org:22 by ssh, which the proxy does not support`."""
    is_loopback: bool = False
    """Whether it is `localhost` or a loopback address: in a sandbox the session's own network."""


def parse_url_mention(word: str) -> HostMention | None:
    """The host of `URL` or `name=URL`. None for other words, and for URLs without a host."""
    match = _URL.match(word)
    if match is None or match[1].lower() in _LOCAL_SCHEMES:
        return None
    scheme = (match[2] or match[1]).lower()
    authority = match[3].rpartition("@")[2]
    port = _PROXIED_PORTS.get(scheme)
    return _refuse_scheme(authority, scheme) if port is None else _mention_host(authority, port)


def parse_bare_mention(word: str, port: int) -> HostMention:
    """The host of an address with or without a scheme."""
    return parse_url_mention(word) or _mention_host(re.split(r"[/?#\\]", word, maxsplit=1)[0].rpartition("@")[2], port)


def parse_ssh_mention(word: str) -> HostMention | None:
    """The host of an address in the short form of ssh. None for a path."""
    match = _SSH_ADDRESS.match(word)
    return _refuse_scheme(match[1], "ssh") if match and "://" not in word else None


def _mention_host(authority: str, port: int) -> HostMention:
    target = parse_host_port(_add_port(authority, port))
    if isinstance(target, InvalidHost):
        return HostMention(unreachable=target.reason)
    if target.address is None and target.labels[-1] == "localhost":
        own = f"{target.spelled} is the sandbox's own; this machine would be 127.0.0.1:{target.port}"
        return HostMention(unreachable=own, is_loopback=True)
    return HostMention(target.spelled, is_loopback=target.address is not None and is_loopback_address(target.address))


def _refuse_scheme(authority: str, scheme: str) -> HostMention:
    port = _OTHER_PORTS.get(scheme)
    address = render_untrusted(authority) if port is None else render_untrusted(_add_port(authority, port))
    return HostMention(unreachable=f"{address} by {render_untrusted(scheme)}, which the proxy does not support")


def _add_port(authority: str, port: int) -> str:
    match = _AUTHORITY.fullmatch(authority)
    return authority if match is None else f"{match[1]}:{match[2] or port}"
