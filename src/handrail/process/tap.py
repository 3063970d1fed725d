"""One pipe of a command, and where what comes out of it goes."""

from collections.abc import Callable

from handrail.process.collecting import OutputBuffer
from handrail.process.pipes import PIPE_CAPACITY_BYTES

Tell = Callable[[bytes], None]


class Tap:
    """Takes what a pipe has without ever waiting for more."""

    def __init__(self, descriptor: int, collected: OutputBuffer, tell: Tell | None) -> None:
        self.descriptor = descriptor
        self.collected = collected
        self._tell = tell
        self._over = False

    def take(self) -> bool:
        """Reads once; whether the pipe is still open for more."""
        data = self.collected.take(self.descriptor)
        if data is None:
            self._over = True
        elif data and self._tell:
            self._tell(bytes(data))
        return not self._over

    def take_rest(self) -> None:
        """Takes what the pipe holds by now, and no more: somebody who got away may print for ever."""
        enough = self.collected.total + PIPE_CAPACITY_BYTES
        before = -1
        while not self._over and before < self.collected.total < enough:
            before = self.collected.total
            self.take()
