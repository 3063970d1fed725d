"""The network of a kept command: a proxy that lives as long as the keeper, and a file of what was tried through it."""

import errno
import json
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

from handrail.policy.network.allowlist import Allowlist
from handrail.process.keeper.state import ATTEMPTS
from handrail.sandbox.proxy.proxy import Attempt, Proxy

_MAX_BLOCKED_ATTEMPTS = 1_000
"""Attempts that are written down although nothing was let through: who tries more often tells nothing new."""
_MAX_FILE_BYTES = 16 << 20
"""Of the whole file. What is not written down is not let through, so that is the end of its network."""
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def serve_network(session: int, folder: str, allow: list[str]) -> Generator[None]:
    """Runs a proxy that listens in a folder, which it removes at the end; OSError and ValueError where it cannot."""
    attempts = _Attempts(session)
    proxy = Proxy(folder, Allowlist.from_entries(allow), attempts.add)
    try:
        yield
    finally:
        proxy.close()
        attempts.close()
        with suppress(OSError):
            os.rmdir(folder)


class _Attempts:
    """Written down one line each, whole lines only."""

    def __init__(self, session: int) -> None:
        self._descriptor = os.open(ATTEMPTS, _APPEND, 0o600, dir_fd=session)
        self._lock = threading.Lock()
        self._blocked_left = _MAX_BLOCKED_ATTEMPTS

    def add(self, attempt: Attempt) -> None:
        """OSError where there is no room for it: the proxy then lets nothing through."""
        line = json.dumps(attempt._asdict()).encode() + b"\n"
        with self._lock:
            if self._descriptor >= 0 and (attempt.allowed or self._blocked_left > 0):
                self._write(line)
                self._blocked_left -= not attempt.allowed

    def _write(self, line: bytes) -> None:
        before = os.fstat(self._descriptor).st_size
        if before + len(line) > _MAX_FILE_BYTES or os.write(self._descriptor, line) < len(line):
            os.ftruncate(self._descriptor, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = -1
