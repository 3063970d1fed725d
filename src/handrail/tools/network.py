"""The network of one command: a proxy to what is open to it, and what it tried to reach."""

import os
import shutil
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from handrail.policy.network.listed import Listed
from handrail.protocol.error import ToolError
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.proxy.attempt import Attempt
from handrail.sandbox.proxy.place import NAME
from handrail.sandbox.proxy.proxy import Proxy
from handrail.tools.contract import Context

if TYPE_CHECKING:
    from handrail.process.sessions.network import ProxyPlan
    from handrail.process.sessions.session import ProcessSession

MOST_EVENTS = 1_000
"""Of one command, each an attempt; those after them are counted, and the result says how many."""
_MOST_TOLD = 5
"""Hosts in a result that were blocked; the events have them all."""


class CommandNetwork:
    """What one command may reach, and what it tried to: `told` is for the model, `warnings` are for people."""

    plan: "ProxyPlan | None" = None
    """What a keeper's proxy is to be."""

    def __init__(self, context: Context, hosts: tuple[str, ...], socket: str) -> None:
        self._context = context
        self._hosts, self._socket = hosts, socket
        self.told: tuple[str, ...] = ()
        self.warnings: tuple[str, ...] = ()

    def confine(self, confinement: Confinement) -> Confinement:
        """The confinement of a command that has this, and nothing else, of the network."""
        return msgspec.structs.replace(confinement, proxy=self._socket, listed=self._hosts)

    def take(self, process: "ProcessSession") -> None:
        """Tells what a kept command tried that ended within its call; else whoever watches it does."""

    def close(self) -> None:
        """The command has ended, or goes on without this."""

    def _tell(self, attempt: Attempt) -> None:
        reason = attempt.reason or why_open(attempt, self._context)
        self._context.attempted(attempt.host, attempt.port, attempt.allowed, reason)

    def _end(self, attempts: Iterable[Attempt], untold: int, told: int) -> None:
        self.told, self.warnings = blocked_words(attempts), untold_words(untold, told)


class OpenNetwork(CommandNetwork):
    """A proxy of ours, as long as a command runs. Its socket is in a folder of its own, in one that is removed with the
    session, or, after a crash, by the next one."""

    def __init__(self, context: Context, hosts: tuple[str, ...], folder: str) -> None:
        self._lock = threading.Lock()
        self._attempts = 0
        self._blocked: list[Attempt] = []
        self._folder = os.path.join(folder, f"network-{os.urandom(6).hex()}")
        try:
            self._proxy = Proxy(self._folder, Listed.from_entries(hosts), self._attempted)
        except OSError as error:
            message = f"The network could not be opened to the command ({error.strerror}). Nothing was run. Try again."
            raise ToolError("UNAVAILABLE", message) from None
        super().__init__(context, hosts, self._proxy.path)

    def close(self) -> None:
        """Ends every connection; all that was tried is told then. Can be repeated."""
        self._proxy.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._end(self._blocked, self._attempts - MOST_EVENTS, MOST_EVENTS)

    def _attempted(self, attempt: Attempt) -> None:
        """In the proxy's threads. Where it cannot be written down, the proxy lets nothing through."""
        with self._lock:
            self._attempts += 1
            if self._attempts > MOST_EVENTS:
                return
            self._blocked += [attempt] if not attempt.allowed else []
        self._tell(attempt)


class KeptNetwork(CommandNetwork):
    """The proxy of a command that may go on: its keeper's, which writes down what was tried in its folder."""

    def __init__(self, context: Context, hosts: tuple[str, ...], folder: str) -> None:
        from handrail.process.sessions.network import ProxyPlan  # noqa: PLC0415  few commands go on

        self.plan = ProxyPlan(os.path.join(folder, f"n-{os.urandom(6).hex()}"), hosts)
        super().__init__(context, hosts, os.path.join(self.plan.folder, NAME))

    def take(self, process: "ProcessSession") -> None:
        """Tells what was tried; nobody can ask for it once it is removed."""
        found = process.attempts(0)
        for attempt in found:
            self._tell(attempt)
        self._end(found, 0, len(found))


def why_open(attempt: Attempt, context: Context) -> str:
    """Why an attempt was let through."""
    host = f"[{attempt.host}]" if ":" in attempt.host else attempt.host
    command = context.facts.command
    approved = command.hosts if command is not None and context.answered else ()
    return "a person said yes to it" if f"{host}:{attempt.port}" in approved else "network.allow lists it"


def blocked_words(attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """What was not let through, each host once: `blocked: example.org:443 is not listed`."""
    words = list(dict.fromkeys(_words(attempt) for attempt in attempts if not attempt.allowed))
    more = [f"{len(words) - _MOST_TOLD} more hosts were blocked"] if len(words) > _MOST_TOLD else []
    return (*words[:_MOST_TOLD], *more)


def untold_words(untold: int, told: int) -> tuple[str, ...]:
    """How many attempts have no event of their own, in words; nothing where all have."""
    if untold <= 0:
        return ()
    return (f"{untold:,} attempts to reach a host, after the first {told:,}, are no events of their own.",)


def _words(attempt: Attempt) -> str:
    where = f"{attempt.host}:{attempt.port}" if attempt.port else attempt.host
    if attempt.reason.startswith(f"{attempt.host} "):
        return f"blocked: {where}{attempt.reason.removeprefix(attempt.host)}"
    return f"blocked: {where}: {attempt.reason}"
