"""What a command prints, in bounded memory: all of it, or its beginning, its end, and a file with the rest."""

import mmap
import os

from handrail.process.ran import CapturedOutput
from handrail.process.spilling import SpillFile
from handrail.sandbox.limits import ResourceLimits

_PIECE_BYTES = 1 << 18
_MAX_HEAD_BYTES = 1 << 16


class OutputBuffer:
    """The output of one pipe. Until `printed` or `discard` is called it may have a file."""

    def __init__(self, limits: ResourceLimits, folder: str) -> None:
        self.total = 0
        self._limits = limits
        self._folder = folder
        self._size = max(2, limits.output)
        self._head = min(_MAX_HEAD_BYTES, self._size // 2)
        # Memory that costs nothing until it is written to. Behind the head it is a ring: read into without copying.
        self._memory = memoryview(mmap.mmap(-1, self._size))
        self._place = 0
        self._spill: SpillFile | None = None

    def take(self, descriptor: int) -> memoryview | None:
        """Reads once: what came, valid until the next read; nothing where nothing is there; None at the end."""
        if self._place == self._size:
            self._turn()
        room = self._memory[self._place : self._place + _PIECE_BYTES]
        try:
            count = os.readv(descriptor, (room,))
        except BlockingIOError:
            return room[:0]
        if not count:
            return None
        self._place += count
        self.total += count
        if self._spill:
            self._spill.add(room[:count])
        return room[:count]

    @property
    def limited(self) -> bool:
        """Whether it was more than may be kept at all."""
        return self.total > max(self._size, self._limits.spilled)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went wrong on the way."""
        if self._spill is None or self._spill.trouble is None:
            return ()
        return (f"Not all of the output could be kept: the file for it could not be written ({self._spill.trouble}).",)

    def printed(self) -> CapturedOutput:
        """All of it; the file is the caller's from here on."""
        if self.total <= self._size:
            self.discard()
            return CapturedOutput(head=bytes(self._memory[: self.total]), total=self.total)
        head, tail = bytes(self._memory[: self._head]), self._tail()
        spilled = self._finished_spill()
        size = spilled.size if spilled else 0
        return CapturedOutput(
            head=head,
            tail=tail,
            total=self.total,
            spilled=spilled.path if spilled else None,
            spilled_bytes=size,
            lost=max(0, self.total - len(tail) - max(len(head), size)),
        )

    def discard(self) -> None:
        """Removes the file, where there is one."""
        if self._spill:
            self._spill.discard()

    def _turn(self) -> None:
        """Begins the ring anew; what it held the first time is put into the file before it is written over."""
        self._place = self._head
        if self.total == self._size and self._spill is None and self._limits.spilled > self._head:
            self._spill = SpillFile(self._folder, self._limits.spilled)
            self._spill.add(self._memory)

    def _tail(self) -> bytes:
        return bytes(self._memory[self._place :]) + bytes(self._memory[self._head : self._place])

    def _finished_spill(self) -> SpillFile | None:
        """The file, if it has more than the head has."""
        if self._spill is None:
            return None
        self._spill.close()
        if self._spill.size > self._head:
            return self._spill
        self._spill.discard()
        return None
