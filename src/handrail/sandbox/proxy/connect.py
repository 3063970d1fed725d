"""Connects to a host whose address may be reached."""

import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from handrail.policy.network.allowlist import Allowlist
from handrail.policy.network.hosts import Address, HostPort, render_untrusted
from handrail.sandbox.proxy.http import NOT_REACHED, REFUSED, TOO_SLOW
from handrail.sandbox.proxy.sockets import ClosedError, Deadline, Poller, TooSlowError

# § [sandbox.proxy.lookup] Finds the addresses of a name, by the machine's own resolver.

Resolve = Callable[[str, int], Sequence[str]]
"""Takes a name and a port, gives addresses; OSError where there are none."""

_MAX_LOOKUPS = 16


def resolve_addresses(host: str, port: int) -> list[str]:
    """The addresses of a name, the best first. The name goes as it is: the codec for names in other scripts is not for
    names that are ASCII by now."""
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class Lookup:
    """Looks names up in threads of their own: the system's resolver cannot be told to stop, and a proxy that is closed
    does not wait for it. What it says then is thrown away."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._changed = threading.Condition()
        self._closed = False
        self._running = 0

    def addresses(self, host: str, port: int, seconds: float) -> list[Address]:
        """Its addresses; OSError where there are none, TooSlowError where they do not come in time."""
        answer: list[list[Address] | OSError] = []
        with self._changed:
            self._wait(lambda: self._running < _MAX_LOOKUPS, seconds)
            _start(self._ask, host, port, answer)
            self._running += 1
            self._wait(lambda: bool(answer), seconds)
        if isinstance(answer[0], OSError):
            raise answer[0]
        return answer[0]

    def close(self) -> None:
        """Nobody waits any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        if not self._changed.wait_for(lambda: self._closed or condition(), seconds):
            raise TooSlowError
        if self._closed:
            raise ClosedError

    def _ask(self, host: str, port: int, answer: list[list[Address] | OSError]) -> None:
        found = self._found(host, port)
        with self._changed:
            answer.append(found)
            self._running -= 1
            self._changed.notify_all()

    def _found(self, host: str, port: int) -> list[Address] | OSError:
        try:
            addresses = [ip_address(text.partition("%")[0]) for text in self._resolve(host, port)]
        except (OSError, ValueError) as error:
            return error if isinstance(error, OSError) else OSError(str(error))
        return addresses or OSError("it has no address")


def _start(work: Callable[..., None], *arguments: object) -> None:
    try:
        threading.Thread(target=work, args=arguments, name="handrail-lookup", daemon=True).start()
    except RuntimeError as error:
        raise OSError(str(error)) from None


# § [sandbox.proxy.own] Which addresses are this machine's own: also those that are out on the internet.

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


# § [sandbox.proxy.reaching] Reaches a host that is listed: looked up once, every address judged, and one of these
# § connected to.

_SECONDS_TO_LOOK_UP = 15.0
_SECONDS_TO_CONNECT = 20.0
_SECONDS_FOR_ONE = 8.0
"""Where there are several addresses, so that one that never answers leaves time for the next."""


class ConnectFailure(NamedTuple):
    """Why there is no connection."""

    status: int
    reason: str
    allowed: bool
    """Whether the list lets it through, and something else was in the way."""
    problem: str = ""
    """What the list has against the host: `is not listed`."""


def _refuse(target: HostPort, problem: str) -> ConnectFailure:
    return ConnectFailure(REFUSED, f"{target.host} {problem}", allowed=False, problem=problem)


class ProxyConnector:
    """Connects to what a list allows."""

    def __init__(self, allow: Allowlist, lookup: Lookup, waiting: Poller) -> None:
        self._allow = allow
        self._lookup = lookup
        self._waiting = waiting

    def connect(self, target: HostPort) -> socket.socket | ConnectFailure:
        """A connection to the target, or why there is none."""
        if problem := self._allow.judge(target):
            return _refuse(target, problem)
        found = [target.address] if target.address is not None else self._addresses(target)
        return found if isinstance(found, ConnectFailure) else self._connected(found, target.port)

    def _addresses(self, target: HostPort) -> list[Address] | ConnectFailure:
        try:
            found = self._lookup.addresses(target.host, target.port, _SECONDS_TO_LOOK_UP)
        except TooSlowError:
            return ConnectFailure(TOO_SLOW, f"the address of {target.host} was not found in time", allowed=True)
        except OSError as error:
            why = f"the address of {target.host} cannot be found ({_told(error)})"
            return ConnectFailure(NOT_REACHED, why, allowed=True)
        # One is enough to refuse all: who owns the name chooses the order.
        for address in found:
            if reason := self._against(address, target.port):
                return _refuse(target, f"is listed, but {reason}")
        return found

    def _against(self, address: Address, port: int) -> str | None:
        """Why an address is not connected to that a listed name leads to."""
        if reason := self._allow.judge_address(address, port):
            return reason
        if is_own(address) and self._allow.judge(HostPort(str(address), port, address)):
            return f"it leads to {address}, an address of this machine, which is not listed as an address"
        return None

    def _connected(self, addresses: list[Address], port: int) -> socket.socket | ConnectFailure:
        deadline = Deadline(_SECONDS_TO_CONNECT)
        failed = ConnectFailure(TOO_SLOW, "no address was left to try", allowed=True)
        for address in addresses:
            for_one = Deadline(deadline.left if len(addresses) == 1 else min(deadline.left, _SECONDS_FOR_ONE))
            connected = self._tried(address, port, for_one)
            if isinstance(connected, socket.socket):
                return connected
            failed = connected
        return failed

    def _tried(self, address: Address, port: int, deadline: Deadline) -> socket.socket | ConnectFailure:
        family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
        try:
            connection = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            return ConnectFailure(NOT_REACHED, f"{address} was not reached ({_told(error)})", allowed=True)
        try:
            connection.setblocking(False)
            self._waiting.connect(connection, (str(address), port), deadline)
        except TooSlowError:
            connection.close()
            return ConnectFailure(TOO_SLOW, f"{address} did not answer in time", allowed=True)
        except OSError as error:
            connection.close()
            return ConnectFailure(NOT_REACHED, f"{address} was not reached ({_told(error)})", allowed=True)
        except BaseException:
            connection.close()
            raise
        return connection


def _told(error: OSError) -> str:
    return render_untrusted(error.strerror or str(error))
