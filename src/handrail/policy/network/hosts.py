"""Reads the host and port that a program asks for: every host has one spelling here, and everything else is refused.

What two programs read differently is how lists are got around: a NUL that a resolver stops at, a dot at the end, an
address in octal. So a name is ASCII letters, digits and hyphens between dots, in lower case once it is read, and an
address is written as the standards write it.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
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
_EMBEDDED = 96
"""Bits before an IPv4 address that an IPv6 address carries: zeros, or zeros and sixteen ones."""


class HostPort(NamedTuple):
    """A host and a port, as they are compared and shown."""

    host: str
    """A name in lower case, or an address."""
    port: int
    address: Address | None = None
    """None where the host is a name."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The parts of a name."""
        return tuple(self.host.split("."))

    @property
    def spelled(self) -> str:
        """As a program would write it."""
        return f"[{self.host}]:{self.port}" if isinstance(self.address, IPv6Address) else f"{self.host}:{self.port}"


class InvalidHost(NamedTuple):
    """A text that names no host that could be listed."""

    host: str
    """What it says, safe to be shown."""
    reason: str
    port: int = 0
    """0 where it cannot be told."""


def parse_host_port(text: str) -> HostPort | InvalidHost:
    """Reads `host:port`, `1.2.3.4:port` or `[::1]:port`."""
    host, colon, digits = text.rpartition(":")
    if not colon or digits.endswith("]"):
        return InvalidHost(render_untrusted(text), "no port is named")
    port = parse_port(digits)
    if port is None:
        return InvalidHost(render_untrusted(host), f"{render_untrusted(digits)} is no port")
    try:
        return parse_host(host, port)
    except ValueError as error:
        return InvalidHost(render_untrusted(host), str(error), port)


def parse_host(text: str, port: int) -> HostPort:
    """Reads a host; ValueError, in words, where it is none or is not spelled as hosts are."""
    if text.startswith("["):
        address: Address | None = _version_6(text)
        return HostPort(str(address), port, address)
    labels = _labels(text)
    address = _version_4(text) if _NUMBER.fullmatch(labels[-1]) else None
    return HostPort(".".join(labels), port, address)


def parse_port(digits: str) -> int | None:
    """A port in plain digits; None where it is none."""
    return int(digits) if _PORT.fullmatch(digits) and int(digits) <= _MAX_PORT else None


def render_untrusted(text: str) -> str:
    """A text that nobody vouches for, as it can be shown: short, one line, nothing unseen in it."""
    safe = "".join(one if one.isascii() and one.isprintable() else f"\\u{{{ord(one):x}}}" for one in text[:300])
    return truncate(safe, _MAX_SHOWN_CHARS)


def parse_plain_ipv6(text: str) -> IPv6Address:
    """Reads an IPv6 address; ValueError where it is none, or is spelled in another way than RFC 5952 says."""
    if "%" in text:
        raise ValueError(f"{render_untrusted(text)} names a network card, which no listed address does")
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise ValueError(f"{render_untrusted(text)} is no IPv6 address") from None
    if has_embedded_ipv4(address):
        raise ValueError(f"{render_untrusted(text)} is an IPv4 address written as an IPv6 one: write the IPv4 address")
    if str(address) != text:
        raise ValueError(f"{render_untrusted(text)} is not in its plain form, which is {address}")
    return address


def has_embedded_ipv4(address: IPv6Address) -> bool:
    """Whether it is one of the forms that stand for an IPv4 address: mapped, or the older compatible one."""
    above = int(address) >> (128 - _EMBEDDED)
    return above == 0xFFFF or (above == 0 and int(address) > 1)


def _labels(text: str) -> list[str]:
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
                f"{render_untrusted(text)} is no name: ASCII letters, digits and hyphens between single dots"
            )
    return labels


def _version_4(text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except AddressValueError:
        raise ValueError(
            f"{render_untrusted(text)} is not an IPv4 address in its plain form, such as 192.0.2.7"
        ) from None


def _version_6(text: str) -> IPv6Address:
    if not text.endswith("]"):
        raise ValueError(f"{render_untrusted(text)} is no address in brackets")
    return parse_plain_ipv6(text[1:-1])
