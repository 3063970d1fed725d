"""A list of hosts that a command may reach, and what it says to one that it asks for.

`pypi.org:443` lists one name, `*.example.org` every name below it by one label or more and not itself, an address or a
block lists addresses. Ports are 80 and 443 where none are named. A name never lists a private address: who owns the
name would choose which.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address

from handrail.policy.network.entries import HostPattern, parse_host_pattern
from handrail.policy.network.hosts import Address, HostPort
from handrail.policy.network.ranges import describe_address_range

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
