"""System calls that commands may not make."""

import os
from collections.abc import Iterator, Mapping
from errno import EACCES, EAFNOSUPPORT, ENOSYS, ENOTTY, EOPNOTSUPP, EPERM, EPROTONOSUPPORT
from functools import lru_cache
from typing import NamedTuple

from handrail.kernel.seccomp import ALLOW, EVERY_BIT, ChoiceOutcome, Outcome, RefuseOutcome, build_filter_program
from handrail.kernel.syscall_numbers import Machine, UnknownMachineError, detect_machine
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import CommandOrigin

# § [sandbox.filters.refused_calls] Which system calls a confined command is refused, whatever their arguments, and
# § why. The error is chosen so that programs go on where they can: ENOSYS and EOPNOTSUPP say "this kernel has no
# § such thing", for which many have another way; EPERM is what an ordinary user would be told anyway.


class RefusedCalls(NamedTuple):
    """Calls that are refused for one reason, with one error."""

    reason: str
    errno: int
    names: str

    def outcomes(self) -> Iterator[tuple[str, RefuseOutcome]]:
        """Each call's name with what becomes of it."""
        return ((name, RefuseOutcome(self.errno)) for name in self.names.split())


REFUSED_ALWAYS = (
    RefusedCalls(
        "the view of the disk is made of mounts: who can mount, unmount or enter another namespace undoes it",
        EPERM,
        "mount umount2 pivot_root chroot setns open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick"
        " mount_setattr",
    ),
    RefusedCalls(
        "its flags lie in memory, where a filter cannot look for namespaces; libraries fall back to clone",
        ENOSYS,
        "clone3",
    ),
    RefusedCalls(
        "reading and steering another process: the first process of the sandbox, or, where there is no process"
        " namespace, everything of the same user",
        EPERM,
        "ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd",
    ),
    RefusedCalls(
        "makes calls that no filter sees; libraries fall back to epoll",
        ENOSYS,
        "io_uring_setup io_uring_enter io_uring_register",
    ),
    RefusedCalls("the user's keys are in no namespace; libraries then use files", ENOSYS, "add_key request_key keyctl"),
    RefusedCalls(
        "large parts of the kernel that builds and tests have no use for and holes are found in",
        EPERM,
        "bpf perf_event_open userfaultfd fanotify_init lookup_dcookie uselib",
    ),
    RefusedCalls("descriptors of threads from before 64 bits, for emulators only", ENOSYS, "modify_ldt"),
    RefusedCalls("opens a file by number, past every folder and mount that hides it", EPERM, "open_by_handle_at"),
    RefusedCalls(
        "the machine itself: its modules, clock, names, swap, quotas, ports, log and power",
        EPERM,
        "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl"
        " quotactl_fd syslog clock_settime settimeofday adjtimex clock_adjtime sethostname setdomainname iopl ioperm"
        " vhangup",
    ),
)

REFUSED_WITHOUT_NETWORK = (
    RefusedCalls(
        "without a network namespace a socket reaches everything that listens; a command that only looks needs none",
        EACCES,
        "socket connect bind listen accept accept4",
    ),
)

REFUSED_WITHOUT_NAMESPACES = (
    RefusedCalls(
        "memory, queues and semaphores by number belong to all processes of the machine",
        ENOSYS,
        "shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semctl semtimedop mq_open mq_unlink",
    ),
    RefusedCalls("Landlock does not hold it back outside the roots", EPERM, "file_setattr"),
    RefusedCalls(
        "Landlock does not hold it back outside the roots; who copies attributes goes on without",
        EOPNOTSUPP,
        "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat",
    ),
)

REFUSED_READ_ONLY = (
    RefusedCalls(
        "changes what is known about a file; its temporary files a reader may still write and remove",
        EPERM,
        "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr"
        " lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr mknod"
        " mknodat",
    ),
)


# § [sandbox.filters.tested_calls] Which system calls a confined command is refused with some arguments only, and
# § why.

_FORBIDDEN = RefuseOutcome(EPERM)


def _only(
    argument: int, *values: int, then: Outcome = ALLOW, mask: int = EVERY_BIT, otherwise: int = EPERM
) -> ChoiceOutcome:
    return ChoiceOutcome(argument, mask, tuple((value, then) for value in values), RefuseOutcome(otherwise))


# Namespaces: a process that has an own user namespace may mount, and reaches far more of the kernel.
_NEW_NAMESPACE = 0x7E02_0000
_UNSHARED_OTHERWISE = 0x0004_0600  # folder and mask, open files, semaphores to undo
_PROCESSES: Mapping[str, Outcome] = {
    "clone": _only(0, 0, mask=_NEW_NAMESPACE),
    "unshare": _only(0, 0, mask=EVERY_BIT & ~_UNSHARED_OTHERWISE),
}

# Devices. Character device 0:0, which anybody may make, means "deleted" to an overlay.
_KIND, _PLAIN, _FILE, _PIPE, _SOCKET = 0o170000, 0, 0o100000, 0o010000, 0o140000
_NODES: Mapping[str, Outcome] = {
    "mknod": _only(1, _PLAIN, _FILE, _PIPE, _SOCKET, mask=_KIND),
    "mknodat": _only(2, _PLAIN, _FILE, _PIPE, _SOCKET, mask=_KIND),
}

# A program left behind with the bit set runs as this user for whoever starts it, sandbox or not. A file that is created
# with the bit loses it with the first byte that is written, as long as the command lacks CAP_FSETID.
_SETUID, _SETGID = 0o4000, 0o2000


def _modes(mask: int) -> Mapping[str, Outcome]:
    places = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
    return {name: _only(place, 0, mask=mask) for name, place in places.items()}


# Letters typed into the terminal's input; the console's own calls; other disciplines of a line are modules to load.
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_TERMINAL = tuple((request, _FORBIDDEN) for request in (_TIOCSTI, _TIOCLINUX, _TIOCSETD))

# A snapshot of a btrfs volume shows the files that something was laid over. Shared blocks are the same family.
_FAMILY = 0xFF00
_BTRFS = 0x9400
_FICLONE, _FICLONERANGE, _FIDEDUPERANGE = 0x4004_9409, 0x4020_940D, 0xC018_9436
_SHARED_BLOCKS = tuple((request, ALLOW) for request in (_FICLONE, _FICLONERANGE, _FIDEDUPERANGE))

# Attributes of files ("immutable", "sealed with a digest", …): set through a descriptor that was opened for reading.
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
_IOCTL_THAT_READS = ChoiceOutcome(
    _REQUEST,
    EVERY_BIT,
    (*_TERMINAL, *_SHARED_BLOCKS, *_ATTRIBUTES_READ),
    ChoiceOutcome(_REQUEST, _FAMILY, ((_BTRFS, RefuseOutcome(ENOTTY)), *_FILE_FAMILIES), ALLOW),
)

# Sockets in an own network namespace. Every further family or protocol is a module that is loaded for whoever asks.
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _PACKETS, _SOCKET_TYPE = 1, 2, 5, 0xF
_INTERNET = _only(  # of the rest, raw needs rights, and the type "packet" is a way into that family
    1,
    _STREAM,
    _DATAGRAM,
    mask=_SOCKET_TYPE,
    then=_only(2, 0, 1, 6, 17, 58, otherwise=EPROTONOSUPPORT),  # by type, ICMP, TCP, UDP, ICMPv6
)
_ROUTES = _only(2, 0, otherwise=EPROTONOSUPPORT)  # which interfaces and addresses there are
_SOCKETS: Mapping[str, Outcome] = {
    "socket": ChoiceOutcome(
        0,
        EVERY_BIT,
        ((_UNIX, ALLOW), (_INET, _INTERNET), (_INET6, _INTERNET), (_NETLINK, _ROUTES)),
        RefuseOutcome(EAFNOSUPPORT),
    ),
    "socketpair": _only(0, _UNIX, otherwise=EAFNOSUPPORT),
}

TESTED_ALWAYS: Mapping[str, Outcome] = {**_PROCESSES, **_NODES, **_modes(_SETUID), **_SOCKETS, "ioctl": _IOCTL}

TESTED_WITHOUT_NETWORK: Mapping[str, Outcome] = {
    # One end of a pair of datagrams can still be told to send elsewhere: to any socket with a name.
    "socketpair": _only(
        0,
        _UNIX,
        then=_only(1, _STREAM, _PACKETS, mask=_SOCKET_TYPE, otherwise=EPROTONOSUPPORT),
        otherwise=EAFNOSUPPORT,
    ),
}

_ONESELF, _ONE_PROCESS, _EVERYBODY = 0, 1, EVERY_BIT
_PRIORITY_OF_ONE = 0
TESTED_WITHOUT_NAMESPACES: Mapping[str, Outcome] = {
    # Limits, turns and places of other processes of the user. Signals cannot be told apart by whom they reach, but for
    # the one to everybody.
    "kill": ChoiceOutcome(0, EVERY_BIT, ((_EVERYBODY, _FORBIDDEN),), ALLOW),
    "prlimit64": _only(0, _ONESELF),
    "setpriority": _only(0, _PRIORITY_OF_ONE, then=_only(1, _ONESELF)),
    "ioprio_set": _only(0, _ONE_PROCESS, then=_only(1, _ONESELF)),
    "sched_setaffinity": _only(0, _ONESELF),
    "sched_setscheduler": _only(0, _ONESELF),
    "sched_setparam": _only(0, _ONESELF),
    "sched_setattr": _only(0, _ONESELF),
    "migrate_pages": _only(0, _ONESELF),
    "move_pages": _only(0, _ONESELF),
    # Here the user's other groups can be given to a file, too.
    **_modes(_SETUID | _SETGID),
    "ioctl": _IOCTL_THAT_READS,
}


def build_ownership_outcomes(user: int, group: int) -> Mapping[str, Outcome]:
    """Without namespaces: files are given to nobody else. Who unpacks or copies as root gives them to himself."""
    unchanged = EVERY_BIT
    places = {"chown": 1, "fchown": 1, "lchown": 1, "fchownat": 2}
    return {
        name: _only(place, unchanged, user, then=_only(place + 1, unchanged, group)) for name, place in places.items()
    }


TESTED_READ_ONLY: Mapping[str, Outcome] = {"ioctl": _IOCTL_THAT_READS}


# § [sandbox.filters.filter] Which filter of system calls a command gets: the wall behind mounts, namespaces and
# § Landlock.

__all__ = ["Owner", "UnknownMachineError", "build_filter", "build_outcomes", "require_filter"]


class Owner(NamedTuple):
    """Whose files a command's new files are."""

    user: int
    group: int


def build_filter(trust: CommandOrigin, tier: int) -> bytes:
    """The filter for a command of this trust in this tier, as bwrap and the kernel take it.

    UnknownMachineError on an architecture whose calls are not known. Tier 0 confines nothing and has no filter.
    """
    return _filter_for(trust, tier, detect_machine(), Owner(os.geteuid(), os.getegid()))


def require_filter(trust: CommandOrigin, tier: int) -> bytes:
    """The same for a command that is about to be run: where there is no filter, it is not."""
    try:
        return build_filter(trust, tier)
    except UnknownMachineError as error:
        raise ToolError("SANDBOX_UNAVAILABLE", f"{error}. Nothing was run.") from None


def build_outcomes(trust: CommandOrigin, tier: int, owner: Owner) -> dict[str, Outcome]:
    """What becomes of calls that are not simply allowed; of two filters that name a call the later, stricter counts."""
    if tier < 1:
        raise ValueError(f"tier {tier} has no filter of system calls; tiers 1, 2 and 3 have")
    outcomes: dict[str, Outcome] = {}
    for refused, tested in _layers(trust, tier, owner):
        outcomes |= tested
        outcomes |= {name: refuse for group in refused for name, refuse in group.outcomes()}
    return outcomes


_Layer = tuple[tuple[RefusedCalls, ...], Mapping[str, Outcome]]


def _layers(trust: CommandOrigin, tier: int, owner: Owner) -> Iterator[_Layer]:
    own_namespaces = tier > 1
    yield REFUSED_ALWAYS, TESTED_ALWAYS
    if trust == "proven" or not own_namespaces:
        yield REFUSED_WITHOUT_NETWORK, TESTED_WITHOUT_NETWORK
    if not own_namespaces:
        yield REFUSED_WITHOUT_NAMESPACES, TESTED_WITHOUT_NAMESPACES
        yield (), build_ownership_outcomes(*owner)
    if trust == "proven":
        yield REFUSED_READ_ONLY, TESTED_READ_ONLY


@lru_cache(maxsize=16)
def _filter_for(trust: CommandOrigin, tier: int, machine: Machine, owner: Owner) -> bytes:
    return build_filter_program(machine, build_outcomes(trust, tier, owner))
