"""Where the server over HTTP listens: on this machine, and nowhere else."""

import socket
from ipaddress import ip_address
from typing import NamedTuple

from handrail.protocol.errors import UsageError
from handrail.protocol.text import render_value

_USE = "use 127.0.0.1:PORT, localhost:PORT or [::1]:PORT; port 0 takes any that is free"


class Address(NamedTuple):
    """A loopback address and a port."""

    host: str
    port: int

    def listen(self) -> socket.socket:
        """A socket that listens there; UsageError where that cannot be."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        # By its name: asyncio sends at once only on what says that it is TCP. Else every answer is held back for 40 ms.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(self)
            listening.listen(1024)  # fewer where the system says so (net.core.somaxconn)
        except OSError as error:
            listening.close()
            raise UsageError(f"{self.name} cannot be listened on: {error.strerror}; {_USE}") from None
        return listening

    @property
    def name(self) -> str:
        """As a URL has it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def names(self) -> frozenset[str]:
        """What a request may call it: any name of this machine for itself, and the port."""
        hosts = ("localhost", "127.0.0.1", "[::1]", self.name.rpartition(":")[0])
        return frozenset((*(f"{host}:{self.port}" for host in hosts), *(hosts if self.port == 80 else ())))


def parse_address(text: str) -> Address:
    """The address that a text says; UsageError where it is none, or none of this machine alone."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise UsageError(f"--http {render_value(text)} is no HOST:PORT; {_USE}")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if bare in {"", "localhost"}:
        return Address("127.0.0.1", int(port))
    if not _is_loopback(bare) or (":" in bare) != (bare != host):
        raise UsageError(
            f"--http {render_value(text)} is not an address of this machine alone: whoever reaches the server can "
            "have files "
            f"changed and commands run; {_USE}"
        )
    return Address(bare, int(port))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
