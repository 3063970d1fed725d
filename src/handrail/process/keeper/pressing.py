"""Keys that send a signal, for a command that shares its terminal with the program that confines it.

A terminal sends the signal to all of a group of processes. Bubblewrap is in the command's, would die of it, and take
the command with it that may have meant to handle it. So the signal is sent here to all of the group but bubblewrap,
unless the command has made a group of its own, as shells do that people type into.
"""

from handrail.kernel.process import INTERRUPT, QUIT, STOP_KEY
from handrail.kernel.procfs import signal_process
from handrail.process.keeper.signalling import list_live_descendants
from handrail.process.keeper.terminal import Terminal

_SIGNALS = {b"\x03": INTERRUPT, b"\x1c": QUIT, b"\x1a": STOP_KEY}


class Keyboard:
    """The keys of one command's terminal."""

    def __init__(self, terminal: Terminal, program: int, namespace: int | None) -> None:
        self._terminal = terminal
        self._program = program
        self._namespace = namespace

    def send_key(self, key: bytes) -> bytes:
        """Presses it; the key itself where it has to be typed."""
        number = _SIGNALS.get(key)
        shared = self._namespace is not None and self._terminal.foreground() == self._program
        if number is None or not shared or not self._terminal.signals():
            return key
        for process in list_live_descendants(self._program, self._namespace):
            if process.group == self._program:
                signal_process(process, number)
        return b""
