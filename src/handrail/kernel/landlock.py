"""landlock(7): a process gives up rights to files, ports and signals, for itself and everything it starts.

The supervisor of a command imports this with a bare interpreter: nothing here may cost a start.
"""

import ctypes
import errno
import os

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
MAKE_CHAR = 1 << 6
MAKE_DIR = 1 << 7
MAKE_REG = 1 << 8
MAKE_SOCK = 1 << 9
MAKE_FIFO = 1 << 10
MAKE_BLOCK = 1 << 11
MAKE_SYM = 1 << 12
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15

FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""Those that a file can have; a folder has them for what is in it."""

# The numbers are the same on every architecture that got its system calls from the common table (all since 2019).
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_MACHINES = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x", "loongarch64"})
_ASK_VERSION = 1
_PATH_BENEATH = 1
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_ABSTRACT_UNIX_SOCKET, _SIGNAL = 1 << 0, 1 << 1

_LACKING = (
    (2, "no file can be renamed or linked from one folder into another"),
    (3, "files that can be read, also outside the roots, can be emptied"),
    (4, "TCP ports are guarded by the system call filter alone"),
    (5, "devices that are already open take any ioctl"),
    (6, "other processes of the same user can be signalled, and reached by abstract Unix sockets"),
)


class _Handled(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


def read_abi_version() -> int:
    """The version of Landlock that this kernel speaks; 0 where it has none or it is switched off."""
    if os.uname().machine not in _MACHINES:
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))


def describe_missing_rights(version: int) -> tuple[str, ...]:
    """What a newer kernel would refuse and this one does not, a clause each."""
    return tuple(clause for since, clause in _LACKING if version < since)


def build_file_rights(version: int) -> int:
    """All rights to files and folders that this version can withhold."""
    known = (MAKE_SYM << 1) - 1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        known |= right if version >= since else 0
    return known


class Ruleset:
    """Everything that this version can withhold is withheld, but for what is allowed beneath a file or folder."""

    def __init__(self, version: int) -> None:
        self._known = build_file_rights(version)
        handled = _Handled(self._known, _BIND_TCP | _CONNECT_TCP, _ABSTRACT_UNIX_SOCKET | _SIGNAL)
        # Older kernels know only the beginning of it, and refuse what they do not know.
        size = 8 if version < 4 else 16 if version < 6 else 24
        self.descriptor = _checked(_syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(size), 0))

    def allow(self, place: int, rights: int) -> None:
        """Allows `rights` to what the descriptor `place` stands for, and beneath it."""
        allow(self.descriptor, place, rights & self._known)

    def close(self) -> None:
        """Lets go of the descriptor; who has restricted itself stays so."""
        os.close(self.descriptor)


def allow(ruleset: int, place: int, rights: int) -> None:
    """Adds one rule to a ruleset: `rights` to what the descriptor `place` stands for, and beneath it."""
    rule = _PathBeneath(rights, place)
    _checked(_syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))


def restrict_self(ruleset: int) -> None:
    """Gives up what the ruleset withholds, for ever; no_new_privs must be set."""
    _checked(_syscall(_RESTRICT_SELF, ruleset, 0))


def _checked(result: int) -> int:
    if result < 0:
        problem = ctypes.get_errno() or errno.EIO
        raise OSError(problem, f"Landlock: {os.strerror(problem)}")
    return result
