"""The network of one command: a proxy to the hosts that are open to it."""

import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager

from msgspec.structs import replace

from handrail.policy.network.allowlist import Allowlist
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import SandboxProfile
from handrail.sandbox.proxy.handover import build_socket_folder
from handrail.sandbox.proxy.proxy import Attempt, Proxy
from handrail.tools.tool import CommandContext

MAX_BLOCKED_ATTEMPTS = 1_000
"""Blocked attempts of one command that become events. The result counts the others."""
_MAX_BLOCKED_HOSTS = 5
"""Blocked hosts that a result names. The events name them all."""
_MAX_REACHED_HOSTS = 20
"""Reached hosts that a result names: an entry with a wildcard may stand for any number."""


class ConnectionLog:
    """The attempts of a command to reach hosts: each one an event, a summary at the end."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        command = context.facts.command
        self._approved = frozenset(command.hosts if command is not None and context.answered else ())
        self._lock = threading.Lock()
        self._blocked_attempts = 0
        self._blocked: dict[str, None] = {}
        self._reached: dict[str, None] = {}

    def add(self, attempt: Attempt) -> None:
        """Logs an attempt, from any thread. If this raises, the proxy lets nothing through."""
        if not attempt.allowed and not self._count_blocked(attempt):
            return
        reason = attempt.reason or self._explain_allowed(attempt)
        self._context.report_connection(attempt.host, attempt.port, attempt.allowed, reason)
        if attempt.allowed:
            with self._lock:
                if len(self._reached) < _MAX_REACHED_HOSTS:
                    self._reached.setdefault(_spell_address(attempt))

    def _count_blocked(self, attempt: Attempt) -> bool:
        """Counts a blocked attempt, and returns whether it becomes an event."""
        with self._lock:
            self._blocked_attempts += 1
            if len(self._blocked) < MAX_BLOCKED_ATTEMPTS:  # a command can make up any number of hosts
                self._blocked.setdefault(describe_attempt(attempt))
            return self._blocked_attempts <= MAX_BLOCKED_ATTEMPTS

    def _explain_allowed(self, attempt: Attempt) -> str:
        return "a person said yes to it" if _spell_address(attempt) in self._approved else "network.allow lists it"

    @property
    def reached(self) -> tuple[str, ...]:
        """The hosts that data was sent to, each once: `example.org:443`."""
        return tuple(self._reached)

    @property
    def blocked_messages(self) -> tuple[str, ...]:
        """What the model reads about blocked hosts, each host once."""
        blocked = list(self._blocked)
        if len(blocked) <= _MAX_BLOCKED_HOSTS:
            return tuple(blocked)
        least = "at least " if len(blocked) == MAX_BLOCKED_ATTEMPTS else ""
        more = f"{least}{len(blocked) - _MAX_BLOCKED_HOSTS:,} more hosts were blocked"
        return (*blocked[:_MAX_BLOCKED_HOSTS], more)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person reads about attempts without an event."""
        unreported = self._blocked_attempts - MAX_BLOCKED_ATTEMPTS
        if unreported <= 0:
            return ()
        after = f"after the first {MAX_BLOCKED_ATTEMPTS:,}"
        return (f"{unreported:,} attempts were blocked, {after}, that are no events of their own.",)


@contextmanager
def open_network(
    profile: SandboxProfile, hosts: tuple[str, ...], log: ConnectionLog, folder: str
) -> Generator[SandboxProfile]:
    """Runs a proxy to the hosts. Yields the profile with this proxy as its only network.

    The socket has a folder of its own in `folder`. At the end all connections are closed, and all attempts are logged.
    """
    socket_folder = build_socket_folder(folder)
    try:
        proxy = Proxy(socket_folder, Allowlist.from_entries(hosts), log.add)
    except OSError as error:
        message = f"The network could not be opened to the command ({error.strerror}). Nothing was run. Try again."
        raise ToolError("UNAVAILABLE", message) from None
    try:
        yield replace(profile, proxy=proxy.path, listed=hosts)
    finally:
        proxy.close()
        shutil.rmtree(socket_folder, ignore_errors=True)


def _spell_address(attempt: Attempt) -> str:
    host = f"[{attempt.host}]" if ":" in attempt.host else attempt.host
    return f"{host}:{attempt.port}"


def describe_attempt(attempt: Attempt) -> str:
    """A blocked attempt: `blocked: example.org:443 is not listed`."""
    if not attempt.host:
        return f"blocked: a request to the proxy: {attempt.reason}"
    where = f"{attempt.host}:{attempt.port}" if attempt.port else attempt.host
    return f"blocked: {where} {attempt.problem}" if attempt.problem else f"blocked: {where}: {attempt.reason}"
