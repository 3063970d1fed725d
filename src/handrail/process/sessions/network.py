"""The network of a process session: what its keeper's proxy is told, and what it tells."""

import json
import os

import msgspec

from handrail.process.keeper.files import ATTEMPTS
from handrail.sandbox.proxy.attempt import Attempt


class ProxyPlan(msgspec.Struct, frozen=True):
    """A proxy for a keeper to run, as long as the command does."""

    folder: str
    """The folder that the process session is to have, where its socket is too: the launch shows it to the command."""
    allow: tuple[str, ...]
    """The entries that are open, as settings write them."""

    @property
    def socket(self) -> str:
        """What leads to the proxy, once it runs."""
        from handrail.sandbox.proxy.place import NAME  # noqa: PLC0415  few commands have one

        return os.path.join(self.folder, NAME)


class Attempts(msgspec.Struct, frozen=True):
    """What a kept command tried to reach."""

    each: tuple[Attempt, ...] = ()
    more: int = 0
    """How many there were after those, once it has ended."""


def read_attempts(folder: str, after: int = 0) -> Attempts:
    """What was written down by now, but for the first few; half a line is not read."""
    try:
        with open(os.path.join(folder, ATTEMPTS), encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]
    except FileNotFoundError:
        return Attempts()
    found = [json.loads(line) for line in lines]
    more = found.pop() if found and isinstance(found[-1], int) else 0
    return Attempts(tuple(Attempt(*one) for one in found[after:]), more)


def without_proxy(folder: str, ports: tuple[int, ...]) -> tuple[int, ...]:
    """The ports that a kept command listens on, without the one that is its proxy's."""
    if not ports or not os.path.exists(os.path.join(folder, ATTEMPTS)):
        return ports
    from handrail.sandbox.proxy.inside import PORT  # noqa: PLC0415  as above

    return tuple(port for port in ports if port != PORT)
