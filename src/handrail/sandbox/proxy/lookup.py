"""Finds the addresses of a name, by the machine's own resolver."""

import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import ip_address

from handrail.policy.network.hosts import Address
from handrail.sandbox.proxy.waiting import ClosedError, TooSlowError

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
