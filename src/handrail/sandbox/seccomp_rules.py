"""The system calls that a command may not make.

Errors are chosen so that programs go on if they can. ENOSYS and EOPNOTSUPP mean "this kernel lacks it", for which many
programs have a fallback. EPERM is what an ordinary user would get anyway.
"""

import os
from collections.abc import Iterator, Mapping
from errno import EACCES, EAFNOSUPPORT, ENOSYS, ENOTTY, EOPNOTSUPP, EPERM, EPROTONOSUPPORT
from functools import lru_cache
from typing import NamedTuple

from handrail.kernel.seccomp import ALLOW, EVERY_BIT, ChoiceOutcome, Outcome, RefuseOutcome, build_filter_program
from handrail.kernel.syscall_numbers import UnknownMachineError, detect_machine
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import CommandOrigin


class _CallGroup(NamedTuple):
    """Calls that are refused with one error, whatever their arguments."""

    reason: str
    errno: int
    names: str

    def outcomes(self) -> Iterator[tuple[str, RefuseOutcome]]:
        return ((name, RefuseOutcome(self.errno)) for name in self.names.split())


class Owner(NamedTuple):
    user: int
    group: int


def build_filter(origin: CommandOrigin, tier: int, *, sockets: bool = False) -> bytes:
    """The compiled filter of a command. UnknownMachineError if the system calls of this architecture are unknown.

    `sockets`: whether a read-only command may open connections in its network namespace.
    """
    return _compile_filter(origin, tier, Owner(os.geteuid(), os.getegid()), sockets=sockets)


def require_filter(origin: CommandOrigin, tier: int, *, sockets: bool = False) -> bytes:
    try:
        return build_filter(origin, tier, sockets=sockets)
    except UnknownMachineError as error:
        raise ToolError("SANDBOX_UNAVAILABLE", f"{error}. Nothing was run.") from None


@lru_cache(maxsize=16)
def _compile_filter(origin: CommandOrigin, tier: int, owner: Owner, *, sockets: bool) -> bytes:
    return build_filter_program(detect_machine(), build_outcomes(origin, tier, owner, sockets=sockets))


def build_outcomes(origin: CommandOrigin, tier: int, owner: Owner, *, sockets: bool = False) -> dict[str, Outcome]:
    """The calls that are not simply allowed. Later, stricter rules replace earlier ones."""
    if tier < 1:
        raise ValueError(f"tier {tier} has no filter of system calls; tiers 1, 2 and 3 have")
    outcomes: dict[str, Outcome] = {}
    for refused, tested in _list_rules(origin, tier, owner, sockets=sockets):
        outcomes |= tested
        outcomes |= {name: refuse for group in refused for name, refuse in group.outcomes()}
    return outcomes


def _list_rules(
    origin: CommandOrigin, tier: int, owner: Owner, *, sockets: bool
) -> Iterator[tuple[tuple[_CallGroup, ...], Mapping[str, Outcome]]]:
    has_namespaces = tier > 1
    yield _REFUSED_ALWAYS, _TESTED_ALWAYS
    if origin == "proven" and has_namespaces and sockets:
        yield _REFUSED_TO_CLIENTS, _TESTED_TO_CLIENTS
    elif origin == "proven" or not has_namespaces:
        yield _REFUSED_WITHOUT_NETWORK, _TESTED_WITHOUT_NETWORK
    if not has_namespaces:
        yield _REFUSED_WITHOUT_NAMESPACES, _TESTED_WITHOUT_NAMESPACES
        yield (), _build_ownership_outcomes(*owner)
    if origin == "proven":
        yield _REFUSED_READ_ONLY, _TESTED_READ_ONLY


_REFUSED_ALWAYS = (
    _CallGroup(
        "mounts make up the view of the disk: mounting, unmounting or entering another namespace would undo it",
        EPERM,
        "mount umount2 pivot_root chroot setns open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick"
        " mount_setattr",
    ),
    _CallGroup(
        "its flags are in memory, where a filter cannot check for namespaces; libraries fall back to clone",
        ENOSYS,
        "clone3",
    ),
    _CallGroup(
        "reads and steers another process: the first one of the sandbox, or, without a process"
        " namespace, everything of the same user",
        EPERM,
        "ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd",
    ),
    _CallGroup(
        "makes calls that no filter sees; libraries fall back to epoll",
        ENOSYS,
        "io_uring_setup io_uring_enter io_uring_register",
    ),
    _CallGroup("the user's keys are in no namespace; libraries then use files", ENOSYS, "add_key request_key keyctl"),
    _CallGroup(
        "large parts of the kernel that builds and tests have no use for and holes are found in",
        EPERM,
        "bpf perf_event_open userfaultfd fanotify_init lookup_dcookie uselib",
    ),
    _CallGroup("descriptors of threads from before 64 bits, for emulators only", ENOSYS, "modify_ldt"),
    _CallGroup("opens a file by number, past every folder and mount that hides it", EPERM, "open_by_handle_at"),
    _CallGroup(
        "the machine itself: its modules, clock, names, swap, quotas, ports, log and power",
        EPERM,
        "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl"
        " quotactl_fd syslog clock_settime settimeofday adjtimex clock_adjtime sethostname setdomainname iopl ioperm"
        " vhangup",
    ),
)

_REFUSED_WITHOUT_NETWORK = (
    _CallGroup(
        "without a network namespace a socket reaches everything that listens; a command that only looks needs none",
        EACCES,
        "socket connect bind listen accept accept4",
    ),
)

_REFUSED_TO_CLIENTS = (
    _CallGroup("a read-only command is not a server; it only sends requests", EACCES, "bind listen accept accept4"),
)

_REFUSED_WITHOUT_NAMESPACES = (
    _CallGroup(
        "memory, queues and semaphores by number belong to all processes of the machine",
        ENOSYS,
        "shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semctl semtimedop mq_open mq_unlink",
    ),
    _CallGroup("Landlock does not refuse it outside the roots", EPERM, "file_setattr"),
    _CallGroup(
        "Landlock does not refuse it outside the roots, and programs that copy attributes continue without it",
        EOPNOTSUPP,
        "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat",
    ),
)

_REFUSED_READ_ONLY = (
    _CallGroup(
        "changes what is known about a file; its temporary files a reader may still write and remove",
        EPERM,
        "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr"
        " lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr mknod"
        " mknodat",
    ),
)


# Calls that are refused with some arguments only.

_FORBIDDEN = RefuseOutcome(EPERM)


def _allow_only(
    argument: int, *values: int, then: Outcome = ALLOW, mask: int = EVERY_BIT, otherwise: int = EPERM
) -> ChoiceOutcome:
    return ChoiceOutcome(argument, mask, tuple((value, then) for value in values), RefuseOutcome(otherwise))


# A process in its own user namespace may mount, and reaches far more of the kernel.
_NEW_NAMESPACE = 0x7E02_0000
_UNSHARED_OTHERWISE = 0x0004_0600  # CLONE_FS, CLONE_FILES, CLONE_SYSVSEM
_PROCESSES: Mapping[str, Outcome] = {
    "clone": _allow_only(0, 0, mask=_NEW_NAMESPACE),
    "unshare": _allow_only(0, 0, mask=EVERY_BIT & ~_UNSHARED_OTHERWISE),
}

# Devices. Every user may make character device 0:0, which means "deleted" in an overlay.
_KIND, _PLAIN, _FILE, _PIPE, _SOCKET = 0o170000, 0, 0o100000, 0o010000, 0o140000
_NODES: Mapping[str, Outcome] = {
    "mknod": _allow_only(1, _PLAIN, _FILE, _PIPE, _SOCKET, mask=_KIND),
    "mknodat": _allow_only(2, _PLAIN, _FILE, _PIPE, _SOCKET, mask=_KIND),
}

# A set-user-ID program that a command leaves would run as this user for everybody, without a sandbox. A file that is
# created with the bit loses it at the first write, unless the command has CAP_FSETID.
_SETUID, _SETGID = 0o4000, 0o2000


def _withhold_mode_bits(mask: int) -> Mapping[str, Outcome]:
    places = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
    return {name: _allow_only(place, 0, mask=mask) for name, place in places.items()}


# Input that is typed into the terminal, calls of the console, line disciplines (which load modules).
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_TERMINAL = tuple((request, _FORBIDDEN) for request in (_TIOCSTI, _TIOCLINUX, _TIOCSETD))

# A btrfs snapshot shows covered files. The calls for shared blocks are of the same family.
_FAMILY = 0xFF00
_BTRFS = 0x9400
_FICLONE, _FICLONERANGE, _FIDEDUPERANGE = 0x4004_9409, 0x4020_940D, 0xC018_9436
_SHARED_BLOCKS = tuple((request, ALLOW) for request in (_FICLONE, _FICLONERANGE, _FIDEDUPERANGE))

# Attributes of files, such as "immutable". A read-only descriptor suffices to set them.
_FILE_FAMILIES = tuple((family, _FORBIDDEN) for family in (0x6600, 0x5800, 0x7600, 0xF500))
_GETFLAGS, _FIEMAP, _FSGETXATTR, _GETVERSION = 0x8008_6601, 0xC020_660B, 0x801C_581F, 0x8008_7601
_ATTRIBUTES_READ = tuple((request, ALLOW) for request in (_GETFLAGS, _FIEMAP, _FSGETXATTR, _GETVERSION))

_REQUEST = 1
_IOCTL = ChoiceOutcome(
    _REQUEST,
    EVERY_BIT,
    (*_TERMINAL, *_SHARED_BLOCKS),
    ChoiceOutcome(_REQUEST, _FAMILY, ((_BTRFS, RefuseOutcome(ENOTTY)),), ALLOW),
)
_IOCTL_READ_ONLY = ChoiceOutcome(
    _REQUEST,
    EVERY_BIT,
    (*_TERMINAL, *_SHARED_BLOCKS, *_ATTRIBUTES_READ),
    ChoiceOutcome(_REQUEST, _FAMILY, ((_BTRFS, RefuseOutcome(ENOTTY)), *_FILE_FAMILIES), ALLOW),
)

# Sockets in a network namespace. The kernel loads a module for every further family or protocol.
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _PACKETS, _SOCKET_TYPE = 1, 2, 5, 0xF
_INTERNET = _allow_only(  # raw sockets need privileges, and the type "packet" opens that family
    1,
    _STREAM,
    _DATAGRAM,
    mask=_SOCKET_TYPE,
    then=_allow_only(2, 0, 1, 6, 17, 58, otherwise=EPROTONOSUPPORT),  # by type, ICMP, TCP, UDP, ICMPv6
)
_ROUTES = _allow_only(2, 0, otherwise=EPROTONOSUPPORT)  # lists interfaces and addresses
_SOCKETS: Mapping[str, Outcome] = {
    "socket": ChoiceOutcome(
        0,
        EVERY_BIT,
        ((_UNIX, ALLOW), (_INET, _INTERNET), (_INET6, _INTERNET), (_NETLINK, _ROUTES)),
        RefuseOutcome(EAFNOSUPPORT),
    ),
    "socketpair": _allow_only(0, _UNIX, otherwise=EAFNOSUPPORT),
}

_TESTED_ALWAYS: Mapping[str, Outcome] = {
    **_PROCESSES,
    **_NODES,
    **_withhold_mode_bits(_SETUID),
    **_SOCKETS,
    "ioctl": _IOCTL,
}

_TESTED_WITHOUT_NETWORK: Mapping[str, Outcome] = {
    # One end of a datagram pair could still send to any named socket.
    "socketpair": _allow_only(
        0,
        _UNIX,
        then=_allow_only(1, _STREAM, _PACKETS, mask=_SOCKET_TYPE, otherwise=EPROTONOSUPPORT),
        otherwise=EAFNOSUPPORT,
    ),
}

_TESTED_TO_CLIENTS: Mapping[str, Outcome] = {
    **_TESTED_WITHOUT_NETWORK,
    # Without unix sockets: a server may do more for a local client.
    "socket": ChoiceOutcome(
        0, EVERY_BIT, ((_INET, _INTERNET), (_INET6, _INTERNET), (_NETLINK, _ROUTES)), RefuseOutcome(EAFNOSUPPORT)
    ),
}

_SELF, _ONE_PROCESS, _ALL_PROCESSES = 0, 1, EVERY_BIT
_PRIORITY_OF_ONE = 0
_TESTED_WITHOUT_NAMESPACES: Mapping[str, Outcome] = {
    # Limits, priorities and memory of the user's other processes. Of signals, a filter recognizes only the one to all.
    "kill": ChoiceOutcome(0, EVERY_BIT, ((_ALL_PROCESSES, _FORBIDDEN),), ALLOW),
    "setpriority": _allow_only(0, _PRIORITY_OF_ONE, then=_allow_only(1, _SELF)),
    "ioprio_set": _allow_only(0, _ONE_PROCESS, then=_allow_only(1, _SELF)),
    **dict.fromkeys(("prlimit64", "migrate_pages", "move_pages"), _allow_only(0, _SELF)),
    **dict.fromkeys(
        ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"), _allow_only(0, _SELF)
    ),
    # A file can get the user's other groups here.
    **_withhold_mode_bits(_SETUID | _SETGID),
    "ioctl": _IOCTL_READ_ONLY,
}


def _build_ownership_outcomes(user: int, group: int) -> Mapping[str, Outcome]:
    """Without namespaces, a command gives files to no other user. Programs that copy as root still may set its own."""
    unchanged = EVERY_BIT
    places = {"chown": 1, "fchown": 1, "lchown": 1, "fchownat": 2}
    return {
        name: _allow_only(place, unchanged, user, then=_allow_only(place + 1, unchanged, group))
        for name, place in places.items()
    }


_TESTED_READ_ONLY: Mapping[str, Outcome] = {"ioctl": _IOCTL_READ_ONLY}
