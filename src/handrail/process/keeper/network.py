"""The network of a kept command: a proxy in its keeper, and what it tried to reach, written down in its folder."""

import json
import os
import threading

from handrail.policy.network.listed import Listed
from handrail.process.keeper.files import ATTEMPTS
from handrail.sandbox.proxy.attempt import Attempt
from handrail.sandbox.proxy.proxy import Proxy

MOST = 1_000
"""Attempts of one command that are written down; those after them are counted."""
_LONGEST = 300
"""Characters of a host or a reason: the proxy tells no more, and a line is written in one piece."""


class KeptNetwork:
    """A proxy from before the command starts until it has ended."""

    def __init__(self, descriptor: int, folder: str, allow: list[str]) -> None:
        self._lock = threading.Lock()
        self._count = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(ATTEMPTS, flags, 0o600, dir_fd=descriptor)
        try:
            self._proxy = Proxy(folder, Listed.from_entries(allow), self._attempted)
        except BaseException:
            os.close(self._file)
            raise

    def close(self) -> None:
        """Ends every connection; all that was tried is written down then."""
        self._proxy.close()
        if self._count > MOST:
            self._write(self._count - MOST)
        os.close(self._file)

    def _attempted(self, attempt: Attempt) -> None:
        """In the proxy's threads. Where it cannot be written down, the proxy lets nothing through."""
        with self._lock:
            self._count += 1
            if self._count <= MOST:
                host, port, allowed, reason = attempt
                self._write([host[:_LONGEST], port, allowed, reason[:_LONGEST]])

    def _write(self, line: object) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")
