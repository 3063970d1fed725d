"""The list of hosts that a command may reach.

`index.example.org:443` lists one name, `*.example.org` every name below it, an address or a block lists addresses. An
entry without ports lists 80 and 443. A name never lists a private address, because its owner would choose which.
"""

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

_Block = IPv4Network | IPv6Network

_DEFAULT_PORTS = frozenset({80, 443})
_MIN_PREFIX_BITS = {4: 8, 6: 7}
"""By the version of the addresses. The widest private blocks have these."""
_FORMS = (
    "index.example.org, index.example.org:443, *.example.org, 192.0.2.7:8080, 10.0.0.0/8:5432, [2001:db8::7]:443 or "
    "[fd00::/8]:443"
)
_PARTS = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]+)(?::(?P<ports>[^:]*))?")
_BITS = re.compile(r"0|[1-9][0-9]{0,2}")
_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_LOOPBACK_BLOCKS = (IPv4Network("127.0.0.0/8"), IPv4Network("0.0.0.0/32"), IPv6Network("::1/128"))


class Allowlist:
    """Hosts that a command may reach. Its judgements are None for a listed host, else what is wrong with the host."""

    def __init__(self, entries: "Iterable[HostPattern]" = ()) -> None:
        self.entries = tuple(entries)

    @classmethod
    def from_entries(cls, texts: Iterable[str]) -> "Allowlist":
        """Parse entries. Raises ValueError with the reason for the first that is wrong."""
        return cls(parse_host_pattern(text) for text in texts)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def judge(self, target: HostPort) -> str | None:
        """Judge a host that a command asks for: `is not listed`."""
        ports = {port for entry in self.entries if entry.names(target) for port in entry.ports}
        if target.port in ports:
            return None
        if ports:
            return f"is listed for port {', '.join(map(str, sorted(ports)))}, not for {target.port}"
        return "is not listed"

    def judge_address(self, address: Address, port: int) -> str | None:
        """Judge an address to which a listed name resolved."""
        kind = describe_address_range(address)
        if kind is None or self.judge(HostPort(str(address), port, address)) is None:
            return None
        return f"it leads to {address}, {kind}, which is not listed as an address with port {port}"

    def holds(self, entry: "HostPattern") -> bool:
        """Whether one of these entries lists everything that an entry lists."""
        return any(listed.holds(entry) for listed in self.entries)

    @property
    def lists_loopback(self) -> bool:
        """Whether an entry lists a loopback address. Then these addresses are this machine's."""
        blocks = [entry.block for entry in self.entries if entry.block is not None]
        return any(listed.overlaps(block) for listed in blocks for block in _LOOPBACK_BLOCKS)

    def private_loopback(self) -> tuple[str, ...]:
        """Loopback hosts that no entry lists. They belong to the sandbox, not to this machine."""
        blocks = [entry.block for entry in self.entries if entry.block is not None]
        addresses = [str(address) for address in _LOOPBACK if not any(address in block for block in blocks)]
        return ("localhost", *addresses)


class HostPattern(NamedTuple):
    """One entry: a name, all names below one, or a block of addresses."""

    ports: frozenset[int]
    labels: tuple[str, ...] = ()
    below: bool = False
    """Whether the entry lists the names below its own, and not its own."""
    block: _Block | None = None
    """One address is a block of one."""

    def names(self, target: HostPort) -> bool:
        """Whether the entry lists a host, for any port."""
        if self.block is not None:
            return target.address is not None and target.address in self.block
        return target.address is None and self._holds_name(target.labels, below=False)

    def holds(self, other: "HostPattern") -> bool:
        """Whether this entry lists everything that another lists."""
        if not other.ports <= self.ports:
            return False
        if self.block is None or other.block is None:
            return self.block is other.block and self._holds_name(other.labels, below=other.below)
        return other.block.network_address in self.block and other.block.prefixlen >= self.block.prefixlen

    def _holds_name(self, labels: tuple[str, ...], *, below: bool) -> bool:
        if not self.below:
            return labels == self.labels and not below
        is_longer = len(labels) > len(self.labels)
        return (is_longer or below) and labels[-len(self.labels) :] == self.labels


class HostPatternError(ValueError):
    """An entry that cannot be listed."""

    def __init__(self, text: str, reason: str) -> None:
        self.problem = f"{render_untrusted(text)} cannot be listed: {reason}"
        super().__init__(f"{self.problem}. Write {_FORMS}.")


def parse_host_pattern(text: str) -> HostPattern:
    """Parse an entry, or raise HostPatternError."""
    try:
        return _build_pattern(*_split_ports(text))
    except ValueError as error:
        raise HostPatternError(text, str(error)) from None


def _split_ports(text: str) -> tuple[str, str | None]:
    if "://" in text or "@" in text:
        raise ValueError("it is a URL; write only its host and port")
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise ValueError("it is not a host, or is an IPv6 address without brackets")
    return parts["host"], parts["ports"]


def _build_pattern(host: str, ports: str | None) -> HostPattern:
    port_set = _DEFAULT_PORTS if ports is None else _parse_ports(ports)
    if host.startswith("*"):
        return HostPattern(port_set, _parse_wildcard(host), below=True)
    if "/" in host:
        return HostPattern(port_set, block=_parse_block(host))
    target = parse_host(host, 0)
    if target.address is not None:
        return HostPattern(port_set, block=ip_network(target.address))
    if target.labels[-1] == "localhost":
        raise ValueError("it is the sandbox's own; this machine is listed by its address, such as 127.0.0.1:8080")
    return HostPattern(port_set, target.labels)


def _parse_ports(text: str) -> frozenset[int]:
    numbers = [parse_port(digits) for digits in text.split(",")]
    ports = frozenset(port for port in numbers if port is not None)
    if len(ports) < len(numbers):
        raise ValueError("a port is a number from 1 to 65535, with commas between several, each once")
    return ports


def _parse_wildcard(host: str) -> tuple[str, ...]:
    if not host.startswith("*."):
        raise ValueError("a star stands for subdomains, as in *.example.org")
    target = parse_host(host.removeprefix("*."), 0)
    if target.address is not None:
        raise ValueError("an address has no subdomains")
    if len(target.labels) < 2:
        raise ValueError("it would allow the domains of many owners")
    return target.labels


def _parse_block(host: str) -> _Block:
    inner = host[1:-1] if host.startswith("[") else host
    address, _, digits = inner.partition("/")
    if host.startswith("["):
        parse_plain_ipv6(address)
    elif parse_host(address, 0).address is None:
        raise ValueError(f"{render_untrusted(address)} is not an address")
    if not _BITS.fullmatch(digits):
        raise ValueError(f"/{render_untrusted(digits)} is not a number of bits")
    try:
        block: _Block = IPv6Network(inner) if host.startswith("[") else IPv4Network(inner)
    except NetmaskValueError:
        raise ValueError(f"/{digits} is more bits than an address has") from None
    except ValueError:
        raise ValueError("the address has bits set beyond those that count") from None
    if block.prefixlen < _MIN_PREFIX_BITS[block.version]:
        raise ValueError("it would allow too many addresses")
    return block
