"""The network of a process session: what its keeper's proxy is told, and what it tells."""

import os

import msgspec

from handrail.process.keeper.files import ATTEMPTS
from handrail.sandbox.proxy.attempt import Attempt


class ProxyPlan(msgspec.Struct, frozen=True):
    """A proxy for a keeper to run, as long as the command does."""

    folder: str
    """Where its socket is, `proxy.sock`, which the launch shows to the command. The keeper makes it, and removes it."""
    allow: tuple[str, ...]
    """The entries that are open, as settings write them."""


def read_attempts(folder: str, after: int) -> list[Attempt]:
    """What was tried, without the first so many."""
    try:
        with open(os.path.join(folder, ATTEMPTS), "rb") as file:
            lines = file.read().split(b"\n")[:-1]  # the last may be half a line, or is nothing
    except FileNotFoundError:
        return []
    return [Attempt(**msgspec.json.decode(line)) for line in lines[after:]]
