"""A hold on a process: it is killed and waited for, never another that got its number."""

import contextlib
import os
import select
import signal
import time

from handrail.kernel.procfs import find_process

_POLL_SECONDS = 0.005
"""How often to look where the kernel has no way to wait."""


class ProcessHandle:
    """One process. Who has this closes it."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.descriptor = _descriptor_of(process)
        """Readable once the process is gone; -1 where the kernel cannot tell, or there is no descriptor left."""
        found = find_process(process) if self.descriptor < 0 else None
        self._started = found.started if found else -1

    @property
    def gone(self) -> bool:
        """Whether it has ended: it runs no more, and of a namespace's first process nothing else in there does."""
        if self.descriptor >= 0:
            return _readable(self.descriptor, 0.0)
        found = find_process(self.process)
        return found is None or found.dead or found.started != self._started

    def kill(self) -> None:
        """Kills it; nothing where it is gone, or where we may not."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.descriptor >= 0:
                signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
            elif not self.gone:
                os.kill(self.process, signal.SIGKILL)

    def wait(self, until: float) -> bool:
        """Waits until it is gone or the clock is there; whether it is gone."""
        if self.descriptor >= 0:
            return _readable(self.descriptor, until - time.monotonic())
        while not self.gone:
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def close(self) -> None:
        """Lets go of it; can be repeated."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _descriptor_of(process: int) -> int:
    try:
        return os.pidfd_open(process)
    except OSError:
        return -1


def _readable(descriptor: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(max(0.0, seconds * 1000)))
