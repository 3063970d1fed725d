"""Connections to the hosts that an allowlist permits."""

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from handrail.policy.network.allowlist import Allowlist
from handrail.policy.network.hosts import Address, HostPort, render_untrusted
from handrail.sandbox.proxy.http import NOT_REACHED, REFUSED, TOO_SLOW
from handrail.sandbox.proxy.sockets import ClosedError, Deadline, Poller, TooSlowError

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a name and port. OSError if there are none."""

_MAX_LOOKUPS = 16
_SECONDS_TO_LOOK_UP = 15.0
_SECONDS_TO_CONNECT = 20.0
_SECONDS_FOR_ONE = 8.0
"""If there are several addresses, so that a silent one leaves time for the next."""
_DISCARD_PORT = 9


class ConnectFailure(NamedTuple):
    status: int
    reason: str
    allowed: bool
    """Whether the list allows it, and it failed for another reason."""
    problem: str = ""
    """Why the list refuses the host: `is not listed`."""


class ProxyConnector:
    def __init__(self, allow: Allowlist, lookup: "Lookup", poller: Poller) -> None:
        self._allow = allow
        self._lookup = lookup
        self._poller = poller

    def connect(self, target: HostPort) -> socket.socket | ConnectFailure:
        if problem := self._allow.judge(target):
            return _refuse(target, problem)
        found = [target.address] if target.address is not None else self._resolve_target(target)
        return found if isinstance(found, ConnectFailure) else self._try_addresses(found, target.port)

    def _resolve_target(self, target: HostPort) -> list[Address] | ConnectFailure:
        try:
            found = self._lookup.addresses(target.host, target.port, _SECONDS_TO_LOOK_UP)
        except TooSlowError:
            return ConnectFailure(TOO_SLOW, f"the address of {target.host} was not found in time", allowed=True)
        except OSError as error:
            why = f"the address of {target.host} cannot be found ({_describe_error(error)})"
            return ConnectFailure(NOT_REACHED, why, allowed=True)
        # One is enough to refuse all: the owner of the name chooses their order.
        for address in found:
            if reason := self._judge_address(address, target.port):
                return _refuse(target, f"is listed, but {reason}")
        return found

    def _judge_address(self, address: Address, port: int) -> str | None:
        if reason := self._allow.judge_address(address, port):
            return reason
        if is_own(address) and self._allow.judge(HostPort(str(address), port, address)):
            return f"it leads to {address}, an address of this machine, which is not listed as an address"
        return None

    def _try_addresses(self, addresses: list[Address], port: int) -> socket.socket | ConnectFailure:
        deadline = Deadline(_SECONDS_TO_CONNECT)
        failed = ConnectFailure(TOO_SLOW, "no other address is left", allowed=True)
        for address in addresses:
            for_one = Deadline(deadline.left if len(addresses) == 1 else min(deadline.left, _SECONDS_FOR_ONE))
            connected = self._try_address(address, port, for_one)
            if isinstance(connected, socket.socket):
                return connected
            failed = connected
        return failed

    def _try_address(self, address: Address, port: int, deadline: Deadline) -> socket.socket | ConnectFailure:
        family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
        with ExitStack() as opened:
            try:
                connection = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
                connection.setblocking(False)
                self._poller.connect(connection, (str(address), port), deadline)
            except TooSlowError:
                return ConnectFailure(TOO_SLOW, f"{address} did not answer in time", allowed=True)
            except OSError as error:
                why = f"{address} was not reached ({_describe_error(error)})"
                return ConnectFailure(NOT_REACHED, why, allowed=True)
            opened.pop_all()
            return connection


def _refuse(target: HostPort, problem: str) -> ConnectFailure:
    return ConnectFailure(REFUSED, f"{target.host} {problem}", allowed=False, problem=problem)


def _describe_error(error: OSError) -> str:
    return render_untrusted(error.strerror or str(error))


def resolve_addresses(host: str, port: int) -> list[str]:
    """The addresses of an ASCII name, the best first."""
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class Lookup:
    """Looks names up in threads, since the system's resolver cannot be stopped. A closed proxy drops the result."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._changed = threading.Condition()
        self._closed = False
        self._running = 0

    def addresses(self, host: str, port: int, seconds: float) -> list[Address]:
        """The addresses of a name. OSError if there are none, TooSlowError if they do not come in time."""
        results: list[list[Address] | OSError] = []
        with self._changed:
            self._wait(lambda: self._running < _MAX_LOOKUPS, seconds)
            _start_thread(self._resolve_in_thread, host, port, results)
            self._running += 1
            self._wait(lambda: bool(results), seconds)
        if isinstance(results[0], OSError):
            raise results[0]
        return results[0]

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        if not self._changed.wait_for(lambda: self._closed or condition(), seconds):
            raise TooSlowError
        if self._closed:
            raise ClosedError

    def _resolve_in_thread(self, host: str, port: int, results: list[list[Address] | OSError]) -> None:
        found = self._resolve_now(host, port)
        with self._changed:
            results.append(found)
            self._running -= 1
            self._changed.notify_all()

    def _resolve_now(self, host: str, port: int) -> list[Address] | OSError:
        try:
            addresses = [ip_address(text.partition("%")[0]) for text in self._resolve(host, port)]
        except (OSError, ValueError) as error:
            return error if isinstance(error, OSError) else OSError(str(error))
        return addresses or OSError("it has no address")


def _start_thread(work: Callable[..., None], *arguments: object) -> None:
    try:
        threading.Thread(target=work, args=arguments, name="handrail-lookup", daemon=True).start()
    except RuntimeError as error:
        raise OSError(str(error)) from None


def is_own(address: Address) -> bool:
    """Whether an address is this machine's: packets to it would come from it. None is sent."""
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), _DISCARD_PORT))
            return ip_address(str(probe.getsockname()[0]).partition("%")[0]) == address
    except OSError:  # unreachable, also for a connection
        return False
