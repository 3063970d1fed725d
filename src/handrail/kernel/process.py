"""System calls that a process makes on itself or on another process."""

import ctypes
import fcntl
import os
import sys

from handrail.kernel.libc import LIBC, check

CAP_DAC_OVERRIDE = 1
CAP_FOWNER = 3
# Numbers of signals, because the `signal` module is slow to load.
HANGUP, INTERRUPT, QUIT, KILL, TERMINATE, CHILD, CONTINUE, STOP, STOP_KEY = 1, 2, 3, 9, 15, 17, 18, 19, 20

_SET_PDEATHSIG = 1
_SET_SECCOMP, _MODE_FILTER = 22, 2
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVS = 38
_CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_INSTRUCTION_BYTES = 8

_SET_MASK = 2
_DEFAULT_HANDLER = ctypes.c_void_p(0)
_LAST_SIGNAL = 64
_SIGNAL_SET_BYTES = 128
_SIGNAL_INFO_BYTES = 128
_PIDFD_SEND_SIGNAL = 424

_NEW_USER, _NEW_NETWORK = 0x1000_0000, 0x4000_0000
_GET_USERNS = 0xB701
_INTERNET, _DATAGRAM = 2, 2
_SET_INTERFACE_FLAGS, _INTERFACE_UP = 0x8914, 1
_INTERFACE_NAME_BYTES, _INTERFACE_REQUEST_BYTES = 16, 40

LIBC.signal.restype = ctypes.c_void_p


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def refuse_new_privileges() -> None:
    """Programs run from here on gain no rights by running: no setuid, no file capabilities."""
    _prctl(_SET_NO_NEW_PRIVS, 1)


def die_with_parent(number: int) -> None:
    """Have this process get the signal when its parent ends."""
    _prctl(_SET_PDEATHSIG, number)


def filter_system_calls(program: bytes) -> None:
    """Install a compiled seccomp filter for this thread and its children, for good. no_new_privs must be set."""
    _prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.byref(_FilterProgram(len(program) // _INSTRUCTION_BYTES, program)))


def keep_capabilities(kept: tuple[int, ...]) -> None:
    """Give up all capabilities but these, for this process and everything it starts."""
    # Without no_new_privs, root gets the dropped capabilities back with the next program it runs.
    refuse_new_privileges()
    _prctl(_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable of the first 32, then of the others
    check(LIBC.capget(header, sets), "capget")
    mask = sum(1 << capability for capability in kept)
    reduced = (ctypes.c_uint32 * 6)(sets[0] & mask, sets[1] & mask)
    check(LIBC.capset(header, reduced), "capset")


def _prctl(option: int, *arguments: object) -> None:
    padded = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in (*arguments, 0, 0, 0, 0)]
    check(LIBC.prctl(option, *padded[:4]), f"prctl {option}")


class SignalQueue:
    """Signals that are read from a descriptor instead of interrupting. Create it before the first child."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            LIBC.signal(number, _DEFAULT_HANDLER)  # an inherited "ignore" would keep the signal away
        self.descriptor = check(LIBC.signalfd(-1, _block(numbers), os.O_CLOEXEC | os.O_NONBLOCK), "signalfd")

    def take(self) -> list[int]:
        """The numbers of the signals that came since the last time."""
        try:
            data = os.read(self.descriptor, 32 * _SIGNAL_INFO_BYTES)
        except BlockingIOError:
            return []
        return [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), _SIGNAL_INFO_BYTES)]


def reset_signals() -> None:
    """Give every signal its default effect and unblock it."""
    for number in range(1, _LAST_SIGNAL + 1):
        LIBC.signal(number, _DEFAULT_HANDLER)
    _block(())


def exec_with_default_signals(*argv: str) -> None:
    """Become a program that has none of the ignored and blocked signals which it would inherit from the host.

    bubblewrap would wait forever if SIGCHLD is ignored, and `timeout` or `kill` could not end a command.
    """
    reset_signals()
    os.execv(argv[0], argv)  # noqa: S606  policy decided on the program, and the sandbox confines it


def send_signal(pidfd: int, number: int) -> bool:
    """Signal the process behind a pidfd. False: it has ended, or may not be signalled."""
    return LIBC.syscall(ctypes.c_long(_PIDFD_SEND_SIGNAL), pidfd, number, None, 0) == 0


def _block(numbers: tuple[int, ...]) -> ctypes.Array[ctypes.c_char]:
    """Block these signals and no others. The result is the signal set."""
    signals = ctypes.create_string_buffer(_SIGNAL_SET_BYTES)
    LIBC.sigemptyset(signals)
    for number in numbers:
        LIBC.sigaddset(signals, number)
    LIBC.sigprocmask(_SET_MASK, signals, None)
    return signals


def create_network() -> None:
    """Move this process into a new network namespace with nothing but loopback, for good. It must have a single thread.

    Without root it enters a new user namespace too, in which its user is the same.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        check(LIBC.unshare(_NEW_NETWORK), "unshare")
    except PermissionError:
        check(LIBC.unshare(_NEW_USER | _NEW_NETWORK), "unshare")
        maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    _start_loopback()


def _start_loopback() -> None:
    request = b"lo".ljust(_INTERFACE_NAME_BYTES, b"\0") + _INTERFACE_UP.to_bytes(2, sys.byteorder)
    descriptor = check(LIBC.socket(_INTERNET, _DATAGRAM, 0), "socket")
    try:
        fcntl.ioctl(descriptor, _SET_INTERFACE_FLAGS, request.ljust(_INTERFACE_REQUEST_BYTES, b"\0"))
    finally:
        os.close(descriptor)


def enter_network(namespace: int) -> None:
    """Move this process into a network namespace, for good. It must have a single thread.

    Without root this works if one of the user's own user namespaces owns the network: the process enters that first.
    """
    try:
        check(LIBC.setns(namespace, _NEW_NETWORK), "setns")
    except PermissionError:
        owner = fcntl.ioctl(namespace, _GET_USERNS)
        try:
            check(LIBC.setns(owner, _NEW_USER), "setns")
        finally:
            os.close(owner)
        check(LIBC.setns(namespace, _NEW_NETWORK), "setns")
