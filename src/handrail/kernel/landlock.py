"""landlock(7): a process drops access rights that its descendants cannot regain."""

import ctypes
import os

from handrail.kernel.libc import COMMON_TABLE_MACHINES, LIBC, check

# Rights to files and folders, in the order of their bits.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR = (1 << bit for bit in range(8))
MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = (1 << bit for bit in range(8, 16))

FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights that apply to a file. A folder passes them on to its content."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_ABSTRACT_UNIX_SOCKET, _SIGNAL = 1 << 0, 1 << 1

_LACKING = (
    (2, "no file can be renamed or linked from one folder into another"),
    (3, "readable files can be truncated, also outside the roots"),
    (4, "TCP ports are guarded by the system call filter alone"),
    (5, "devices that are already open take any ioctl"),
    (6, "other processes of the same user can be signalled, and reached by abstract Unix sockets"),
)


class _Handled(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


_syscall = LIBC["syscall"]  # of its own: openat2 sets other argument types
_syscall.restype = ctypes.c_long


def read_abi_version() -> int:
    """The Landlock version of this kernel. 0: the kernel has none, or it is disabled."""
    if os.uname().machine not in COMMON_TABLE_MACHINES:
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))


def describe_missing_rights(version: int) -> tuple[str, ...]:
    """The accesses that only a newer kernel can refuse, a clause each."""
    return tuple(clause for since, clause in _LACKING if version < since)


def build_file_rights(version: int) -> int:
    """All rights to files and folders that this version can withhold."""
    known = (MAKE_SYM << 1) - 1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        known |= right if version >= since else 0
    return known


class Ruleset:
    """A set of rules that withholds every right this version knows, except those allowed for a file or folder."""

    def __init__(self, version: int) -> None:
        self._known = build_file_rights(version)
        handled = _Handled(self._known, _BIND_TCP | _CONNECT_TCP, _ABSTRACT_UNIX_SOCKET | _SIGNAL)
        # Older kernels know only the first fields and refuse a longer struct.
        size = 8 if version < 4 else 16 if version < 6 else 24
        self.descriptor = check(_syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(size), 0), "Landlock")

    def allow(self, place: int, rights: int) -> None:
        allow(self.descriptor, place, rights & self._known)

    def close(self) -> None:
        """Close the descriptor. Processes that restricted themselves stay restricted."""
        os.close(self.descriptor)


def allow(ruleset: int, place: int, rights: int) -> None:
    """Add a rule to a ruleset: `rights` for the file or folder behind the descriptor `place`, and below it."""
    rule = _PathBeneath(rights, place)
    check(_syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0), "Landlock")


def restrict_self(ruleset: int) -> None:
    """Give up the rights that the ruleset withholds, for good. no_new_privs must be set."""
    check(_syscall(_RESTRICT_SELF, ruleset, 0), "Landlock")
