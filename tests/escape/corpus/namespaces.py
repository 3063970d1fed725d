"""Mounts and namespaces: another view of the disk, another user, another root."""

from tests.escape.case import Case, User

_ROOT: tuple[User, ...] = ("root",)
_FLAGS = {
    "mount": 0x00020000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "cgroup": 0x02000000,
    "time": 0x00000080,
}

_MOUNTS: dict[str, tuple[str, str, tuple[User, ...], bool]] = {
    "bind": (
        "mounts an outside folder into the workspace",
        """
        os.mkdir("in")
        if in_own_pid_namespace():
            reach("mount", b"/usr", b"in", None, 4096, None)
        else:
            reach("mount", b"/none", b"/none", None, 4096, None)
        """,
        _ROOT,
        False,
    ),
    "tmpfs": (
        "mounts an empty folder over one of the system",
        """
        if in_own_pid_namespace():
            reach("mount", b"none", b"/etc", b"tmpfs", 0, None)
        else:
            reach("mount", b"none", b"/none", b"tmpfs", 0, None)
        """,
        _ROOT,
        False,
    ),
    "remount": (
        "makes a read-only folder writable",
        """
        if in_own_pid_namespace():
            for path in ("/usr", "/etc", "/", SHOWN):
                reach("mount", None, path.encode(), None, 32 | 4096, None)
        else:
            reach("mount", None, b"/none", None, 32, None)
        """,
        _ROOT,
        False,
    ),
    "shared": (
        "has its mounts seen by others",
        """
        if in_own_pid_namespace():
            reach("mount", None, b"/", None, 1 << 20 | 16384, None)
        else:
            reach("mount", None, b"/none", None, 1 << 20, None)
        """,
        _ROOT,
        False,
    ),
    "proc": (
        "mounts a /proc of its own",
        'reach("mount", b"proc", b"/proc" if in_own_pid_namespace() else b"/none", b"proc", 0, None)',
        _ROOT,
        False,
    ),
    "by-descriptor": (
        "mounts by /proc/self/fd",
        """
        file = os.open("/usr", os.O_PATH)
        os.mkdir("in")
        reach(
            "mount",
            f"/proc/self/fd/{file}".encode(),
            b"in" if in_own_pid_namespace() else b"/none",
            None,
            4096,
            None,
        )
        """,
        _ROOT,
        False,
    ),
    "program": (
        "has mount(8) do it, which is setuid",
        """
        os.mkdir("in")
        if in_own_pid_namespace():
            print("REACHED" if run("mount", "-t", "tmpfs", "none", "in") == 0 else "refused")
        else:
            reach("mount", b"none", b"/none", b"tmpfs", 0, None)
        """,
        _ROOT,
        False,
    ),
    "umount": (
        "unmounts what is mounted",
        """
        for path in ("/tmp", "/proc", "/dev", WORKSPACE, HOME, "/") if in_own_pid_namespace() else ("/none",):
            for flags in (0, 1, 2, 8):
                reach("umount2", path.encode(), flags)
        """,
        _ROOT,
        False,
    ),
    "umount-lazily": (
        "has umount -l take the workspace away from over what is below",
        """
        for path in (WORKSPACE, HOME, "/tmp") if in_own_pid_namespace() else ("/none",):
            print("REACHED" if run("umount", "-l", path) == 0 else "refused")
        attempt(show, f"{OUTSIDE}/secret.txt")
        """,
        (),
        False,
    ),
    "pivot": (
        "makes another folder the root",
        """
        os.mkdir("in")
        reach("pivot_root", b"in", b"in") if in_own_pid_namespace() else reach("pivot_root", b"/none", b"/none")
        """,
        _ROOT,
        False,
    ),
    "chroot": ("makes a folder its root", 'os.mkdir("in"); reach("chroot", b"in")', _ROOT, False),
    "open-tree": ("copies a tree of mounts by the new calls", 'tree = reach("open_tree", -100, b"/", 1)', _ROOT, True),
    "open-tree-workspace": (
        "takes hold of the mount that it stands on and moves it",
        """
        if in_own_pid_namespace():
            reach("move_mount", os.open(WORKSPACE, os.O_PATH), b"", -100, b"/tmp", 4)
        else:
            reach("move_mount", -1, b"", -1, b"", 0)
        """,
        _ROOT,
        True,
    ),
    "fsopen": (
        "makes a file system by the new calls",
        """
        system = reach("fsopen", b"tmpfs", 0)
        reach("fsconfig", system, 6, None, None, 0)
        reach("fsmount", system, 0, 0)
        """,
        _ROOT,
        True,
    ),
    "fspick": ("takes hold of a file system to change it", 'reach("fspick", -100, b"/none", 0)', (), True),
    "mount-setattr": (
        "makes a mount writable by the new call",
        """
        reach(
            "mount_setattr",
            -100,
            (SHOWN if in_own_pid_namespace() else "/none").encode(),
            0,
            struct.pack("QQQQ", 0, 1, 0, 0),
            32,
        )
        """,
        _ROOT,
        True,
    ),
    "overlay": (
        "lays a writable layer over the system",
        """
        for name in ("up", "work", "in"):
            os.mkdir(name)
        syscall(
            "mount",
            b"overlay",
            b"in",
            b"overlay",
            0,
            f"lowerdir=/usr,upperdir={FREE}/up,workdir={FREE}/work".encode(),
        ) if in_own_pid_namespace() else None
        if os.listdir("in"):
            print("REACHED")
        """,
        (),
        False,
    ),
    "fuse": (
        "mounts by fusermount, which is setuid",
        """
        os.mkdir("in")
        for program in ("fusermount3", "fusermount"):
            if shutil.which(program):
                attempt(run, program, "-u", WORKSPACE)
                attempt(run, program, "in")
        opened("/dev/fuse", os.O_RDWR)
        """,
        _ROOT,
        True,
    ),
    "loop": ("mounts a file as a disk", 'opened("/dev/loop-control", os.O_RDWR)', _ROOT, True),
}


def _unsharing(name: str, flag: int) -> Case:
    return Case(
        id=f"namespaces/unshare-{name}",
        family="namespaces",
        tries=f"makes a {name} namespace of its own",
        program=f'reach("unshare", {flag:#x})',
        real_for=("root", "ordinary") if name == "user" else _ROOT,
        host_may_refuse=True,
    )


def _cloning(name: str, flag: int) -> Case:
    return Case(
        id=f"namespaces/clone-{name}",
        family="namespaces",
        tries=f"starts a child in a {name} namespace of its own",
        program=f"""
        got, error = syscall("clone", {flag:#x} | signal.SIGCHLD, 0, 0, 0, 0)
        if got == 0: os._exit(0)
        print("REACHED" if got > 0 else "refused", got, error)
        """,
        real_for=("root", "ordinary") if name == "user" else _ROOT,
        host_may_refuse=True,
    )


CASES = [
    *(
        Case(
            id=f"mounts/{name}", family="mounts", tries=tries, program=lines, real_for=real_for, host_may_refuse=differs
        )
        for name, (tries, lines, real_for, differs) in _MOUNTS.items()
    ),
    *(_unsharing(name, flag) for name, flag in _FLAGS.items()),
    *(_cloning(name, _FLAGS[name]) for name in ("user", "mount", "pid", "net")),
    Case(
        id="namespaces/clone3-user",
        family="namespaces",
        tries="starts a child in a user namespace by the newest call, whose flags no filter can read",
        program="""
        got, error = syscall("clone3", struct.pack("QQQQQQQQ", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64)
        if got == 0: os._exit(0)
        print("REACHED" if got > 0 else "refused", got, error)
        """,
        host_may_refuse=True,
    ),
    Case(
        id="namespaces/unshare-program",
        family="namespaces",
        tries="becomes root in namespaces of its own, by unshare(1)",
        program="""
        print(
            "REACHED"
            if run("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "true") == 0
            else "refused"
        )
        """,
        host_may_refuse=True,
    ),
    Case(
        id="namespaces/bwrap-again",
        family="namespaces",
        tries="makes a sandbox in the sandbox, which it rules",
        program="""
        if shutil.which("bwrap"):
            print("REACHED" if run("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true") == 0 else "refused")
        """,
        host_may_refuse=True,
    ),
    Case(
        id="namespaces/setns-outsider",
        family="namespaces",
        tries="enters the namespaces of an outside process",
        program="""
        for kind in ("user", "mnt", "pid", "net", "uts", "ipc", "cgroup"):
            for process in (OUTSIDER, RUNTIME, 1):
                there = attempt(os.open, f"/proc/{process}/ns/{kind}", os.O_RDONLY)
                if there is not None: reach("setns", there, 0, refusals=(*REFUSALS, errno.EINVAL))
        """,
        real_for=_ROOT,
    ),
    Case(
        id="namespaces/setns-pidfd",
        family="namespaces",
        tries="enters the namespaces of an outside process by a pidfd",
        program="""
        process, error = syscall("pidfd_open", OUTSIDER, 0)
        reach("setns", process, 0x00020000, refusals=(*REFUSALS, errno.ESRCH, errno.EBADF))
        """,
        real_for=_ROOT,
        host_may_refuse=True,
    ),
    Case(
        id="namespaces/nsenter",
        family="namespaces",
        tries="enters the namespaces of the first process, by nsenter(1)",
        program="""
        print(
            "REACHED"
            if run("nsenter", "-t", "1" if in_own_pid_namespace() else str(RUNTIME), "-m", "-u", "-n", "true") == 0
            else "refused"
        )
        """,
        real_for=_ROOT,
    ),
    Case(
        id="namespaces/parent",
        family="namespaces",
        tries="enters the namespace that owns its own",
        program="""
        for kind in ("user", "pid", "mnt", "net"):
            own = os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)
            for request in (0xb701, 0xb702):
                try:
                    parent = fcntl.ioctl(own, request)
                    reach("setns", parent, 0)
                except OSError as error: print("refused", error.strerror)
        """,
        real_for=(),
    ),
]
