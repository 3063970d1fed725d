"""Signals as files, and signals that cannot reach the wrong process.

The supervisor of a command imports this with a bare interpreter: nothing here may cost a start, as `signal` does.
"""

import ctypes
import os
import sys

HANGUP, INTERRUPT, QUIT, KILL, TERMINATE, CHILD, CONTINUE, STOP, STOP_KEY = 1, 2, 3, 9, 15, 17, 18, 19, 20

_SET_MASK = 2
_DEFAULT = ctypes.c_void_p(0)
_LAST = 64
_INFO = 128
_PIDFD_SEND_SIGNAL = 424

_libc = ctypes.CDLL(None, use_errno=True)
_libc.signal.restype = ctypes.c_void_p


class SignalQueue:
    """Signals that are taken from a descriptor instead of interrupting; made before the first child is."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            _libc.signal(number, _DEFAULT)  # it may have been inherited as ignored, and would never come
        chosen = _signal_set(numbers)
        _mask(chosen)
        self.descriptor: int = _libc.signalfd(-1, chosen, os.O_CLOEXEC | os.O_NONBLOCK)
        if self.descriptor < 0:
            problem = ctypes.get_errno()
            raise OSError(problem, f"signalfd: {os.strerror(problem)}")

    def take(self) -> list[int]:
        """The numbers of the signals that have come since the last time."""
        try:
            data = os.read(self.descriptor, 32 * _INFO)
        except BlockingIOError:
            return []
        return [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), _INFO)]


def forget_inherited() -> None:
    """Every signal does again what it does by default, and none is held back."""
    for number in range(1, _LAST + 1):
        _libc.signal(number, _DEFAULT)
    _mask(_signal_set(()))


def send(process: int, number: int) -> bool:
    """Sends to the process behind a pidfd; whether it was still there and could be reached."""
    return _libc.syscall(ctypes.c_long(_PIDFD_SEND_SIGNAL), process, number, None, 0) == 0


def _signal_set(numbers: tuple[int, ...]) -> ctypes.Array[ctypes.c_char]:
    chosen = ctypes.create_string_buffer(128)
    _libc.sigemptyset(chosen)
    for number in numbers:
        _libc.sigaddset(chosen, number)
    return chosen


def _mask(chosen: ctypes.Array[ctypes.c_char]) -> None:
    _libc.sigprocmask(_SET_MASK, chosen, None)
