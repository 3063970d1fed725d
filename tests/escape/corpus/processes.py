"""Other processes: their memory, their files, their limits, and signals to them."""

from tests.escape.case import Case, User

_ROOT: tuple[User, ...] = ("root",)
_MAYBE = {
    "ptrace-attach",
    "ptrace-seize",
    "read-memory",
    "write-memory",
    "memory-file",
    "write-memory-file",
    "take-descriptor",
    "by-gdb",
    "compare",
    "advise-memory",
}

_ROOT_ONLY = {"cgroup", "advise-memory"}

_LOOKING = {
    "ptrace-attach": (
        "attaches to another process as its debugger",
        """
        got, error = syscall("ptrace", 16, OUTSIDER, 0, 0)
        if got == 0:
            os.waitpid(OUTSIDER, 0x40000000)
            word = ctypes.c_long()
            syscall("ptrace", 5, OUTSIDER, ADDRESS, 0x4545454545454545)
            syscall("ptrace", 17, OUTSIDER, 0, 0)
        """,
    ),
    "ptrace-seize": (
        "seizes another process",
        """
        got, error = syscall("ptrace", 0x4206, OUTSIDER, 0, 0)
        if got == 0:
            print("REACHED the outsider")
        """,
    ),
    "ptrace-runtime": (
        "attaches to the runtime",
        """
        if reach("ptrace", 0x4206, RUNTIME, 0, 0, refusals=(*REFUSALS, errno.ESRCH)) == 0:
            syscall("ptrace", 17, RUNTIME, 0, 0)
        """,
    ),
    "ptrace-first": (
        "attaches to the first process that it sees",
        """
        if OUTER_PID_NAMESPACE != os.readlink("/proc/self/ns/pid"):
            reach("ptrace", 0x4206, 1, 0, 0)
        """,
    ),
    "read-memory": (
        "reads another process's memory by one call",
        """
        room = ctypes.create_string_buffer(64)
        local = struct.pack("QQ", ctypes.addressof(room), 64)
        there = struct.pack("QQ", ADDRESS, 64)
        print(syscall("process_vm_readv", OUTSIDER, local, 1, there, 1, 0))
        print(room.value.decode())
        """,
    ),
    "write-memory": (
        "writes another process's memory by one call",
        """
        room = ctypes.create_string_buffer(b"ESCAPED")
        local = struct.pack("QQ", ctypes.addressof(room), 7)
        there = struct.pack("QQ", ADDRESS, 7)
        print(syscall("process_vm_writev", OUTSIDER, local, 1, there, 1, 0))
        """,
    ),
    "memory-file": (
        "reads /proc/PID/mem",
        """
        with open(f"/proc/{OUTSIDER}/mem", "rb", buffering=0) as file:
            file.seek(ADDRESS)
            print(file.read(64).decode())
        """,
    ),
    "write-memory-file": (
        "writes /proc/PID/mem",
        """
        with open(f"/proc/{OUTSIDER}/mem", "r+b", buffering=0) as file:
            file.seek(ADDRESS)
            file.write(b"ESCAPED")
        """,
    ),
    "environ": ("reads another process's environment", 'print(open(f"/proc/{OUTSIDER}/environ").read())'),
    "command-line": (
        "reads another process's arguments",
        """
        print(open(f"/proc/{OUTSIDER}/cmdline").read())
        run("ps", "axww") if in_own_pid_namespace() else None
        """,
    ),
    "descriptor": ("reads a file that another process has open", 'show(f"/proc/{OUTSIDER}/fd/{HELD}")'),
    "take-descriptor": (
        "takes an open file from another process",
        """
        process, error = syscall("pidfd_open", OUTSIDER, 0)
        file, error = syscall("pidfd_getfd", process, HELD, 0)
        if file >= 0:
            print(os.pread(file, 100, 0).decode())
        """,
    ),
    "any-environ": (
        "looks for secrets in the environment of all processes",
        'for process in others(): attempt(show, f"/proc/{process}/environ")',
    ),
    "by-gdb": (
        "has a debugger read a process",
        """
        if shutil.which("gdb"):
            run("gdb", "-p", str(OUTSIDER), "-batch", "-ex", f"x/s {ADDRESS}")
        else:
            show(f"/proc/{OUTSIDER}/environ")
        """,
    ),
    "compare": (
        "asks whether two processes share a descriptor",
        'reach("kcmp", os.getpid(), OUTSIDER, 0, 1, HELD, refusals=(*REFUSALS, errno.ESRCH))',
    ),
    "advise-memory": (
        "has the kernel throw out another process's pages",
        """
        process, error = syscall("pidfd_open", OUTSIDER, 0)
        if process >= 0:
            reach("process_madvise", process, struct.pack("QQ", ADDRESS & ~4095, 4096), 1, 20, 0)
        """,
    ),
    "see-others": (
        "finds out which processes there are",
        """
        if os.path.exists(f"/proc/{OUTSIDER}/status") and "outsider" in open(f"/proc/{OUTSIDER}/cmdline").read():
            print("REACHED", OUTSIDER)
        """,
    ),
}
_CHANGING = {
    "nice": ("slows another process down", "os.setpriority(os.PRIO_PROCESS, OUTSIDER, 19)"),
    "nice-group": ("slows another process group down", "os.setpriority(os.PRIO_PGRP, OUTSIDER, 18)"),
    "processors": ("takes processors from another process", "os.sched_setaffinity(OUTSIDER, [0])"),
    "scheduler": ("makes another process idle", "os.sched_setscheduler(OUTSIDER, os.SCHED_IDLE, os.sched_param(0))"),
    "input-priority": ("gives another process's reads the last place", 'syscall("ioprio_set", 1, OUTSIDER, 3 << 13)'),
    "limits": ("takes descriptors from another process", "resource.prlimit(OUTSIDER, resource.RLIMIT_NOFILE, (5, 5))"),
    "limits-runtime": (
        "takes descriptors from the runtime",
        """
        soft, hard = resource.prlimit(RUNTIME, resource.RLIMIT_NOFILE)
        resource.prlimit(RUNTIME, resource.RLIMIT_NOFILE, (min(soft, hard - 1), hard - 1))
        """,
    ),
    "oom-score": (
        "offers another process for killing",
        'open(f"/proc/{OUTSIDER}/oom_score_adj", "w").write("1000")',
    ),
    "cgroup": (
        "moves another process to another cgroup",
        """
        for path in glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True):
            opened(path, os.O_WRONLY)
        """,
    ),
}
_SIGNALS = {
    "kill": ("sends a signal to another process", "os.kill(OUTSIDER, signal.SIGUSR1)"),
    "kill-hard": ("kills another process", "os.kill(OUTSIDER, signal.SIGKILL)"),
    "stop": ("stops another process", "os.kill(OUTSIDER, signal.SIGSTOP)"),
    "kill-group": ("sends a signal to another process group", "os.killpg(OUTSIDER, signal.SIGTERM)"),
    "thread": ("sends a signal to a thread", 'syscall("tgkill", OUTSIDER, OUTSIDER, signal.SIGUSR1)'),
    "thread-old": ("sends a signal by the old call", 'syscall("tkill", OUTSIDER, signal.SIGUSR1)'),
    "queue": (
        "queues a signal with a value",
        'syscall("rt_sigqueueinfo", OUTSIDER, 40, struct.pack("iii", 40, 0, -1).ljust(128, b"\\0"))',
    ),
    "queue-thread": (
        "queues a signal for a thread",
        r"""
        syscall("rt_tgsigqueueinfo", OUTSIDER, OUTSIDER, 40, struct.pack("iii", 40, 0, -1).ljust(128, b"\0"))
        """,
    ),
    "pidfd": (
        "sends a signal by a pidfd",
        """
        process, error = syscall("pidfd_open", OUTSIDER, 0)
        syscall("pidfd_send_signal", process, signal.SIGTERM, None, 0)
        """,
    ),
    "owner": (
        "has the kernel signal another process when its pipe is ready",
        """
        ends = os.pipe()
        fcntl.fcntl(ends[0], fcntl.F_SETOWN, OUTSIDER)
        fcntl.fcntl(ends[0], fcntl.F_SETSIG, signal.SIGUSR1)
        fcntl.fcntl(ends[0], fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(ends[1], b"x")
        """,
    ),
    "shell": (
        "has the shell's kill reach another process",
        'run("bash", "-c", f"kill -TERM {OUTSIDER}; kill -9 {OUTSIDER}")',
    ),
}


def _family(family: str, table: dict[str, tuple[str, str]]) -> list[Case]:
    return [
        Case(
            id=f"{family}/{name}",
            family=family,
            tries=tries,
            program=lines,
            gap="processes" if name in {"command-line", "see-others"} else None,
            real_for=() if name == "ptrace-first" else _ROOT if name in _ROOT_ONLY else ("root", "ordinary"),
            host_may_refuse=name in _MAYBE,
        )
        for name, (tries, lines) in table.items()
    ]


CASES = [
    *_family("processes", _LOOKING),
    *_family("outsiders", _CHANGING),
    *_family("signals", _SIGNALS),
    Case(
        id="signals/everybody",
        family="signals",
        tries="kills every process that it may",
        program="""
        assert in_own_pid_namespace()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.kill(-1, signal.SIGTERM)
        """,
        harmless=False,
        not_tried_at=(1, 0),
    ),
    Case(
        id="processes/first-environment",
        family="processes",
        tries="finds the runtime's environment at the first process of its own world",
        program="""
        assert in_own_pid_namespace()
        show("/proc/1/environ")
        show("/proc/1/cmdline")
        for path in glob.glob("/proc/1/fd/*"):
            attempt(lambda: print(path, os.readlink(path)))
        attempt(lambda: print(os.listdir("/proc/1/cwd"), os.listdir("/proc/1/root")))
        attempt(show, f"/proc/1/root/oldroot{OUTSIDE}/secret.txt")
        attempt(show, f"/oldroot{OUTSIDE}/secret.txt")
        """,
        harmless=False,
        not_tried_at=(1, 0),
    ),
]
