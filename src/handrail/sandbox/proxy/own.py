"""Which addresses are this machine's own: also those that are out on the internet."""

import socket
from ipaddress import IPv6Address, ip_address

from handrail.policy.network.hosts import Address

_ANY_PORT = 9


def is_own(address: Address) -> bool:
    """Whether what is sent to an address would come from that address too. Nothing is sent to find out."""
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), _ANY_PORT))
            return ip_address(str(probe.getsockname()[0]).partition("%")[0]) == address
    except OSError:  # no way leads there, for a connection neither
        return False
