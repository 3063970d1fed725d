"""The network of one command: a proxy to what is open to it, and what it tried to reach."""

import shutil
import threading
from typing import Self

import msgspec

from handrail.policy.network.allowlist import Allowlist
from handrail.protocol.errors import ToolError
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.proxy.attempt import Attempt
from handrail.sandbox.proxy.place import build_socket_folder
from handrail.sandbox.proxy.proxy import Proxy
from handrail.tools.contract import CommandContext

MAX_BLOCKED_ATTEMPTS = 1_000
"""Of one command, each an event; those after them are counted, and the result says how many. Whatever is let through
is an event, however much it is."""
_MAX_BLOCKED_HOSTS = 5
"""Hosts in a result that were blocked; the events have them all."""
_MAX_REACHED_HOSTS = 20
"""Hosts in a result that were told something; an entry with a wildcard may stand for any number."""


class ConnectionLog:
    """What a command tried to reach: told as it comes, and in short at the end."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        command = context.facts.command
        self._approved = frozenset(command.hosts if command is not None and context.answered else ())
        self._lock = threading.Lock()
        self._refused = 0
        self._blocked: dict[str, None] = {}
        self._reached: dict[str, None] = {}

    @property
    def reached(self) -> tuple[str, ...]:
        """The hosts that something was sent to, each once: `example.org:443`."""
        return tuple(self._reached)

    @property
    def blocked_messages(self) -> tuple[str, ...]:
        """What the model is told: what was blocked, each host once."""
        blocked = list(self._blocked)
        least = "at least " if len(blocked) == MAX_BLOCKED_ATTEMPTS else ""
        more = (
            [f"{least}{len(blocked) - _MAX_BLOCKED_HOSTS:,} more hosts were blocked"]
            if len(blocked) > _MAX_BLOCKED_HOSTS
            else []
        )
        return (*blocked[:_MAX_BLOCKED_HOSTS], *more)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person is told: how many attempts have no event of their own."""
        untold = self._refused - MAX_BLOCKED_ATTEMPTS
        if untold <= 0:
            return ()
        return (
            f"{untold:,} attempts were blocked, after the first {MAX_BLOCKED_ATTEMPTS:,}, that are no events of their"
            " own.",
        )

    def add(self, attempt: Attempt) -> None:
        """In whatever thread."""
        if not attempt.allowed and not self._is_worth_telling(attempt):
            return
        reason = attempt.reason or self._why_open(attempt)
        self._context.report_connection(
            attempt.host, attempt.port, attempt.allowed, reason
        )  # fails: nothing is let through
        if attempt.allowed:
            self._note_reached(attempt)

    def _note_reached(self, attempt: Attempt) -> None:
        with self._lock:
            if len(self._reached) < _MAX_REACHED_HOSTS:
                self._reached.setdefault(_address(attempt))

    def _is_worth_telling(self, blocked: Attempt) -> bool:
        with self._lock:
            self._refused += 1
            if len(self._blocked) < MAX_BLOCKED_ATTEMPTS:  # a command can make up any number
                self._blocked.setdefault(describe_attempt(blocked))
            return self._refused <= MAX_BLOCKED_ATTEMPTS

    def _why_open(self, attempt: Attempt) -> str:
        return "a person said yes to it" if _address(attempt) in self._approved else "network.allow lists it"


class OpenNetwork:
    """A proxy as long as a command runs. Its socket is in a folder of its own, in one that is removed with the session,
    or, after a crash, by the next one."""

    def __init__(self, tried: ConnectionLog, hosts: tuple[str, ...], folder: str) -> None:
        self._hosts = hosts
        self._folder = build_socket_folder(folder)
        try:
            self._proxy = Proxy(self._folder, Allowlist.from_entries(hosts), tried.add)
        except OSError as error:
            message = f"The network could not be opened to the command ({error.strerror}). Nothing was run. Try again."
            raise ToolError("UNAVAILABLE", message) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def confine(self, profile: SandboxProfile) -> SandboxProfile:
        """The profile of a command that has this, and nothing else, of the network."""
        return msgspec.structs.replace(profile, proxy=self._proxy.path, listed=self._hosts)

    def close(self) -> None:
        """Ends every connection; all that was tried is told then. Can be repeated."""
        self._proxy.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _address(attempt: Attempt) -> str:
    host = f"[{attempt.host}]" if ":" in attempt.host else attempt.host
    return f"{host}:{attempt.port}"


def describe_attempt(attempt: Attempt) -> str:
    """An attempt that was not let through: `blocked: example.org:443 is not listed`."""
    if not attempt.host:
        return f"blocked: a request to the proxy: {attempt.reason}"
    where = f"{attempt.host}:{attempt.port}" if attempt.port else attempt.host
    if attempt.reason.startswith(f"{attempt.host} "):
        return f"blocked: {where}{attempt.reason.removeprefix(attempt.host)}"
    return f"blocked: {where}: {attempt.reason}"
