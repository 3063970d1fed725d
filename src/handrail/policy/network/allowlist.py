"""Hosts that commands may reach."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, NetmaskValueError, ip_network
from typing import NamedTuple

from handrail.policy.network.hosts import (
    Address,
    HostPort,
    describe_address_range,
    parse_host,
    parse_plain_ipv6,
    parse_port,
    render_untrusted,
)

# § [policy.network.entries] Reads one entry of a list of hosts: what it lists, and for which ports.

Block = IPv4Network | IPv6Network

DEFAULT_PORTS = frozenset({80, 443})
"""Of an entry that names none: those of http and https."""
_WIDEST = {4: 8, 6: 7}
"""How many bits at least a block must fix, by the version of its addresses: one of private addresses fixes as few."""
_FORMS = "pypi.org, pypi.org:443, *.example.org, 192.0.2.7:8080, 10.0.0.0/8:5432, [2001:db8::7]:443 or [fd00::/8]:443"
_PARTS = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]+)(?::(?P<ports>[^:]*))?")
_BITS = re.compile(r"0|[1-9][0-9]{0,2}")


class HostPattern(NamedTuple):
    """A name, all names below one, or a block of addresses; and the ports."""

    text: str
    ports: frozenset[int]
    labels: tuple[str, ...] = ()
    below: bool = False
    """Whether it lists the names below its own, and not its own."""
    block: Block | None = None
    """The addresses that it lists; one address is a block of one."""

    def names(self, target: HostPort) -> bool:
        """Whether it lists a host, for some port or other."""
        if self.block is not None:
            return target.address is not None and target.address in self.block
        return target.address is None and self._holds_name(target.labels, below=False)

    def holds(self, other: "HostPattern") -> bool:
        """Whether everything that another entry lists is listed by this one."""
        if not other.ports <= self.ports:
            return False
        if self.block is None or other.block is None:
            return self.block is other.block and self._holds_name(other.labels, below=other.below)
        return _lies_in(other.block, self.block)

    def _holds_name(self, labels: tuple[str, ...], *, below: bool) -> bool:
        if not self.below:
            return labels == self.labels and not below
        is_longer = len(labels) > len(self.labels)
        return (is_longer or below) and labels[-len(self.labels) :] == self.labels


def parse_host_pattern(text: str) -> HostPattern:
    """Reads an entry; ValueError, in words, where it is none."""
    try:
        return _entry(text, *_split(text))
    except ValueError as error:
        raise ValueError(f"{render_untrusted(text)} cannot be listed: {error}. Write {_FORMS}.") from None


def _split(text: str) -> tuple[str, str | None]:
    """The host, and the ports where some are named."""
    if "://" in text or "@" in text:
        raise ValueError("it is a URL, and only its host and port count")
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise ValueError("it is no host, or an IPv6 address without brackets")
    return parts["host"], parts["ports"]


def _entry(text: str, host: str, ports: str | None) -> HostPattern:
    listed = DEFAULT_PORTS if ports is None else _ports(ports)
    if host.startswith("*"):
        return HostPattern(text, listed, _below(host), below=True)
    if "/" in host:
        return HostPattern(text, listed, block=_block(host))
    target = parse_host(host, 0)
    if target.address is not None:
        return HostPattern(text, listed, block=ip_network(target.address))
    if target.labels[-1] == "localhost":
        raise ValueError("it is the sandbox's own; this machine is listed by its address, such as 127.0.0.1:8080")
    return HostPattern(text, listed, target.labels)


def _ports(text: str) -> frozenset[int]:
    found = [parse_port(digits) for digits in text.split(",")]
    ports = frozenset(port for port in found if port is not None)
    if len(ports) < len(found):
        raise ValueError("a port is a number from 1 to 65535, with commas between several, each once")
    return ports


def _below(host: str) -> tuple[str, ...]:
    if not host.startswith("*."):
        raise ValueError("a star stands for the names below one, as in *.example.org")
    target = parse_host(host.removeprefix("*."), 0)
    if target.address is not None:
        raise ValueError("there are no names below an address")
    if len(target.labels) < 2:
        raise ValueError("it would list the names of very many owners")
    return target.labels


def _block(host: str) -> Block:
    inner = host[1:-1] if host.startswith("[") else host
    address, _, digits = inner.partition("/")
    if host.startswith("["):
        parse_plain_ipv6(address)
    elif parse_host(address, 0).address is None:
        raise ValueError(f"{render_untrusted(address)} is no address")
    if not _BITS.fullmatch(digits):
        raise ValueError(f"/{render_untrusted(digits)} is no number of bits")
    try:
        block: Block = IPv6Network(inner) if host.startswith("[") else IPv4Network(inner)
    except NetmaskValueError:
        raise ValueError(f"/{digits} is more bits than an address has") from None
    except ValueError:
        raise ValueError("the address has bits set beyond those that count") from None
    if block.prefixlen < _WIDEST[block.version]:
        raise ValueError("it would list a good part of all addresses")
    return block


def _lies_in(inner: Block, outer: Block) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)


# § [policy.network.listed] A list of hosts that a command may reach, and what it says to one that it asks for.
# § `pypi.org:443` lists one name, `*.example.org` every name below it by one label or more and not itself, an
# § address or a block lists addresses. Ports are 80 and 443 where none are named. A name never lists a private
# § address: who owns the name would choose which.

_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))


class Allowlist:
    """Entries, read. Says None to what they list, and to everything else why not, in words."""

    def __init__(self, entries: Iterable[HostPattern] = ()) -> None:
        self.entries = tuple(entries)

    @classmethod
    def from_entries(cls, texts: Iterable[str]) -> "Allowlist":
        """Reads entries; ValueError, in words, for the first that is wrong."""
        return cls(parse_host_pattern(text) for text in texts)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def judge(self, target: HostPort) -> str | None:
        """Whether a host may be asked for; an address also whether it may be reached."""
        ports = {port for entry in self.entries if entry.names(target) for port in entry.ports}
        if target.port in ports:
            return None
        if ports:
            return f"{target.host} is listed for port {_joined(ports)}, not for {target.port}"
        return f"{target.host} is not listed"

    def judge_address(self, address: Address, port: int) -> str | None:
        """Whether an address may be reached that a listed name leads to."""
        kind = describe_address_range(address)
        if kind is None or self.judge(HostPort(str(address), port, address)) is None:
            return None
        return f"it leads to {address}, {kind}, which is not listed as an address with port {port}"

    def holds(self, entry: HostPattern) -> bool:
        """Whether everything that an entry lists is listed here, by one entry."""
        return any(own.holds(entry) for own in self.entries)

    def private_loopback(self) -> tuple[str, ...]:
        """The loopback hosts that no entry lists: they are the command's own, not this machine's."""
        blocks = [entry.block for entry in self.entries if entry.block is not None]
        own = [str(address) for address in _LOOPBACK if not any(address in block for block in blocks)]
        return ("localhost", *own)


def _joined(ports: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ports)))
