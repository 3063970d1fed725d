"""System calls on processes: prctl, capabilities, signals, namespaces."""

import ctypes
import fcntl
import os
import sys

# § [kernel.prctl] prctl(2): what a process decides about itself before it runs something that it does not trust.
# § The supervisor of a command imports this with a bare interpreter: nothing here may cost a start.

CAP_DAC_OVERRIDE = 1
CAP_FOWNER = 3

_SET_PDEATHSIG = 1
_SET_SECCOMP, _MODE_FILTER = 22, 2
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVS = 38
_CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 47, 4

_CAPABILITY_VERSION_3 = 0x20080522
_INSTRUCTION = 8

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent ends."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def refuse_new_privileges() -> None:
    """No program that is run from here on gains rights by running: no setuid, no file capabilities."""
    _prctl(_SET_NO_NEW_PRIVS, 1)


def die_with_parent(number: int) -> None:
    """This process gets the signal when its parent ends."""
    _prctl(_SET_PDEATHSIG, number)


def filter_system_calls(program: bytes) -> None:
    """Installs a compiled seccomp filter for this thread and all that it starts, for good; no_new_privs must be set."""
    _prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.byref(_Program(len(program) // _INSTRUCTION, program)))


def keep_capabilities(kept: tuple[int, ...]) -> None:
    """Gives up all of root's rights but these, for this process and everything it starts; others have none anyway."""
    # What is not in the permitted set comes back to root with the next program, unless it may gain no rights at all.
    refuse_new_privileges()
    _prctl(_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable of the first 32, then of the others
    _checked(_libc.capget(header, sets), "capget")
    mask = sum(1 << one for one in kept)
    left = (ctypes.c_uint32 * 6)(sets[0] & mask, sets[1] & mask)
    _checked(_libc.capset(header, left), "capset")


def _prctl(option: int, *arguments: object) -> None:
    padded = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in (*arguments, 0, 0, 0, 0)]
    _checked(_libc.prctl(option, *padded[:4]), f"prctl {option}")


def _checked(result: int, what: str) -> None:
    if result != 0:
        problem = ctypes.get_errno()
        raise OSError(problem, f"{what}: {os.strerror(problem)}")


# § [kernel.signals] Signals as files, and signals that cannot reach the wrong process.  The supervisor of a command
# § imports this with a bare interpreter: nothing here may cost a start, as `signal` does.

HANGUP, INTERRUPT, QUIT, KILL, TERMINATE, CHILD, CONTINUE, STOP, STOP_KEY = 1, 2, 3, 9, 15, 17, 18, 19, 20

_SET_MASK = 2
_DEFAULT = ctypes.c_void_p(0)
_LAST = 64
_INFO = 128
_PIDFD_SEND_SIGNAL = 424

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


# § [kernel.namespaces] setns(2): goes into the network of another process, with what rights its owner has there.

_NEW_USER, _NEW_NETWORK = 0x1000_0000, 0x4000_0000
_GET_USERNS = 0xB701


def enter_network(namespace: int) -> None:
    """Takes this process, which must have one thread only, into a network namespace, for good.

    Who is not root may do so where the namespace belongs to a user namespace that is theirs, from inside that one.
    """
    try:
        _enter(namespace, _NEW_NETWORK)
    except PermissionError:
        owner = fcntl.ioctl(namespace, _GET_USERNS)
        try:
            _enter(owner, _NEW_USER)
        finally:
            os.close(owner)
        _enter(namespace, _NEW_NETWORK)


def _enter(namespace: int, kind: int) -> None:
    if _libc.setns(namespace, kind) != 0:
        problem = ctypes.get_errno()
        raise OSError(problem, f"setns: {os.strerror(problem)}")
