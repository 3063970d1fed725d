"""Which system calls a confined command is refused, whatever their arguments, and why.

The error is chosen so that programs go on where they can: ENOSYS and EOPNOTSUPP say "this kernel has no such thing",
for which many have another way; EPERM is what an ordinary user would be told anyway.
"""

from collections.abc import Iterator
from errno import EACCES, ENOSYS, EOPNOTSUPP, EPERM
from typing import NamedTuple

from handrail.kernel.seccomp import RefuseOutcome


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
