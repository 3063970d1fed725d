"""Reaches a host that is listed: looked up once, every address judged, and one of these connected to."""

import socket
from ipaddress import IPv6Address
from typing import NamedTuple

from handrail.policy.network.allowlist import Allowlist
from handrail.policy.network.hosts import Address, HostPort, render_untrusted
from handrail.sandbox.proxy.answers import NOT_REACHED, REFUSED, TOO_SLOW
from handrail.sandbox.proxy.lookup import Lookup
from handrail.sandbox.proxy.own import is_own
from handrail.sandbox.proxy.waiting import Deadline, Poller, TooSlowError

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


class ProxyConnector:
    """Connects to what a list allows."""

    def __init__(self, allow: Allowlist, lookup: Lookup, waiting: Poller) -> None:
        self._allow = allow
        self._lookup = lookup
        self._waiting = waiting

    def connect(self, target: HostPort) -> socket.socket | ConnectFailure:
        """A connection to the target, or why there is none."""
        if reason := self._allow.judge(target):
            return ConnectFailure(REFUSED, reason, allowed=False)
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
                return ConnectFailure(REFUSED, f"{target.host} is listed, but {reason}", allowed=False)
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
