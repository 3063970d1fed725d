"""The network of a background command: a proxy that lives as long as its keeper."""

import errno
import json
import os
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

from handrail.policy.network.allowlist import Allowlist
from handrail.process.keeper.state import ATTEMPTS
from handrail.sandbox.proxy.proxy import Attempt, Proxy

_MAX_BLOCKED_ATTEMPTS = 1_000
_MAX_FILE_BYTES = 16 << 20
"""Size of the file of attempts. An attempt that cannot be recorded is blocked, so a full file ends the network."""
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def serve_network(session: int, folder: str, allow: Iterable[str]) -> Generator[None]:
    """Run a proxy that listens in `folder`, and remove the folder at the end."""
    attempts = _AttemptWriter(session)
    proxy = Proxy(folder, Allowlist.from_entries(allow), attempts.add)
    try:
        yield
    finally:
        proxy.close()
        attempts.close()
        with suppress(OSError):
            os.rmdir(folder)


class _AttemptWriter:
    """Appends attempts to a file, whole lines only."""

    def __init__(self, session: int) -> None:
        self._descriptor = os.open(ATTEMPTS, _APPEND, 0o600, dir_fd=session)
        self._lock = threading.Lock()
        self._blocked_left = _MAX_BLOCKED_ATTEMPTS

    def add(self, attempt: Attempt) -> None:
        """Raise OSError if there is no room. The proxy then blocks the attempt."""
        line = json.dumps(attempt._asdict()).encode() + b"\n"
        with self._lock:
            if self._descriptor >= 0 and (attempt.allowed or self._blocked_left > 0):
                size = os.fstat(self._descriptor).st_size
                if size + len(line) > _MAX_FILE_BYTES or os.write(self._descriptor, line) < len(line):
                    os.ftruncate(self._descriptor, size)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self._blocked_left -= not attempt.allowed

    def close(self) -> None:
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = -1
