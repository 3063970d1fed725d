"""A ripgrep process: its output in pieces, its complaints bounded, its end certain."""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Self

from handrail.protocol.error import ToolError
from handrail.workspace.root import find_descriptor_path
from handrail.workspace.search.engine import Stop

_PIECE_BYTES = 1 << 18
_PAUSE_MILLISECONDS = 2
"""How long to wait for output before asking whether to stop."""
_KEPT = ("HOME", "XDG_CONFIG_HOME")
"""What ripgrep needs to find the user's own git ignore file."""


class RipgrepProcess:
    """One run. Leaving the `with` block ends the process, whatever it was doing."""

    def __init__(
        self, arguments: list[bytes], folder: int | None, complain: Callable[[bytes], None], stdin: int | None = None
    ) -> None:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        try:
            self._process = subprocess.Popen(  # noqa: S603  the program was chosen by us, and its options are ours
                [b"rg", *arguments[1:]],  # some programs are several, and look by which name they are called
                executable=arguments[0],
                cwd=None if folder is None else _place(folder),
                env=environment,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except OSError as error:
            message = f"ripgrep could not be started ({error.strerror}); `handrail doctor` says which one it is."
            raise ToolError("UNAVAILABLE", message) from None
        self._complain = complain
        self.stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def pieces(self, stop: Stop) -> Iterator[bytes]:
        """What it prints, as it comes; ends with the output, or when `stop` says so (then `stopped` is true)."""
        stdout, stderr = self._descriptors()
        waiting = select.poll()
        waiting.register(stdout, select.POLLIN)
        waiting.register(stderr, select.POLLIN)
        open_ones = {stdout, stderr}
        while open_ones:
            ready = waiting.poll(_PAUSE_MILLISECONDS)
            if stop():
                self.stopped = True
                return
            for descriptor, _ in ready:
                piece = os.read(descriptor, _PIECE_BYTES)
                if not piece:
                    waiting.unregister(descriptor)
                    open_ones.discard(descriptor)
                elif descriptor == stdout:
                    yield piece
                else:
                    self._complain(piece)

    def status(self) -> int:
        """Its exit status, negative for a signal: once it has said everything."""
        return self._process.wait()

    def _descriptors(self) -> tuple[int, int]:
        if self._process.stdout is None or self._process.stderr is None:
            raise AssertionError("both were asked for")
        return self._process.stdout.fileno(), self._process.stderr.fileno()


def _place(folder: int) -> str:
    """A name for an open folder: itself where the system has one, else where it is now."""
    return f"/proc/self/fd/{folder}" if sys.platform == "linux" else find_descriptor_path(folder)
