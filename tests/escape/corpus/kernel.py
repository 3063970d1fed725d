"""The kernel's wide doors. Each call is made so that it does nothing even where it is let through: what tells a closed
door from an open one is whether the kernel refuses the call or finds fault with its arguments."""

from textwrap import dedent

from tests.escape.case import Case, User

_ROOT: tuple[User, ...] = ("root",)
_BOTH: tuple[User, ...] = ("root", "ordinary")

# name: what it tries, how, who gets through where nothing confines them, whether kernels differ
_DOORS: dict[str, tuple[str, str, tuple[User, ...], bool]] = {
    "io-uring": (
        "sets up a ring, past which no filter sees",
        'reach("io_uring_setup", 4, ctypes.create_string_buffer(120))',
        _BOTH,
        True,
    ),
    "io-uring-enter": (
        "enters a ring",
        """
        reach("io_uring_enter", -1, 0, 0, 0, None, 0)
        reach("io_uring_register", -1, 0, None, 0)
        """,
        _BOTH,
        True,
    ),
    "userfaultfd": ("handles its own page faults, to win races in the kernel", 'reach("userfaultfd", 1)', _BOTH, True),
    "userfaultfd-device": ("handles page faults by the device", 'opened("/dev/userfaultfd", os.O_RDWR)', (), True),
    "bpf-map": (
        "makes a map",
        'reach("bpf", 0, struct.pack("IIIII", 2, 4, 4, 1, 0).ljust(128, b"\\0"), 128)',
        _ROOT,
        True,
    ),
    "bpf-program": ("loads a program into the kernel", 'reach("bpf", 5, bytes(128), 128)', _ROOT, True),
    "perf": (
        "counts what the processor does",
        r"""
        reach(
            "perf_event_open",
            struct.pack("IIQQQQQ", 1, 112, 0, 0, 0, 0, 1 << 5 | 1 << 6).ljust(112, b"\0"),
            0,
            -1,
            -1,
            0,
        )
        """,
        _BOTH,
        True,
    ),
    "perf-machine": (
        "counts what all processes do",
        'reach("perf_event_open", struct.pack("IIQ", 1, 112, 0).ljust(112, b"\\0"), -1, 0, -1, 0)',
        _ROOT,
        True,
    ),
    "fanotify": ("watches everybody's files", 'reach("fanotify_init", 0, 0)', _ROOT, True),
    "fanotify-own": ("watches files as an ordinary user may", 'reach("fanotify_init", 0x200, 0)', _BOTH, True),
    "handle": (
        "opens files by their handles",
        'reach("open_by_handle_at", os.open(".", os.O_RDONLY), HANDLE, 0)',
        _ROOT,
        True,
    ),
    "module": ("loads a module", 'reach("init_module", None, 0, b""); reach("finit_module", -1, b"", 0)', _ROOT, True),
    "remove-module": ("removes a module", 'reach("delete_module", b"no_module_of_this_name", 0o4000)', _ROOT, True),
    "modprobe": (
        "has the kernel load a module for an unknown protocol",
        """
        for family in (3, 4, 5, 6, 9, 12, 21, 29, 30, 31, 33, 35, 36, 37, 39, 41, 42, 43):
            attempt(socket.socket, family, socket.SOCK_DGRAM)
        attempt(lambda: print("REACHED", socket.socket(38, socket.SOCK_SEQPACKET)))
        """,
        _BOTH,
        True,
    ),
    "kexec": (
        "loads another kernel",
        """
        reach("kexec_load", 0, 0, None, 0xFF)
        reach("kexec_file_load", -1, -1, 0, None, 0xFF)
        """,
        _ROOT,
        True,
    ),
    "reboot": ("restarts the machine (with a wrong magic number)", 'reach("reboot", 0, 0, 0, None)', _ROOT, False),
    "swap": (
        "swaps to a file that it chooses",
        """
        reach("swapon", f"{WORKSPACE}/none".encode(), 0)
        reach("swapoff", f"{WORKSPACE}/none".encode())
        """,
        _ROOT,
        False,
    ),
    "accounting": (
        "has the kernel write what all processes do",
        'reach("acct", f"{WORKSPACE}/none".encode())',
        _ROOT,
        True,
    ),
    "quota": ("changes quotas", 'reach("quotactl", 0x800007 << 8, b"/none", 0, None)', _ROOT, True),
    "host-name-length": (
        "gives the machine another name (of a length that cannot be)",
        'reach("sethostname", b"", -1); reach("setdomainname", b"", -1)',
        _ROOT,
        False,
    ),
    "clock": (
        "sets the clock (to a time that cannot be)",
        'reach("adjtimex", struct.pack("I", 0x4000).ljust(208, b"\\xff"))',
        _ROOT,
        False,
    ),
    "hang-up": ("hangs up the terminal", 'reach("vhangup") if in_own_pid_namespace() else None', (), False),
    "move-pages": (
        "moves another process's memory between nodes",
        """
        reach("move_pages", OUTSIDER, 0, None, None, None, 0, refusals=(*REFUSALS, errno.ESRCH))
        reach("migrate_pages", OUTSIDER, 0, None, None, refusals=(*REFUSALS, errno.ESRCH))
        """,
        _ROOT,
        True,
    ),
    "ports": ("reaches the machine's ports", 'reach("iopl", 3); reach("ioperm", 0x80, 1, 1)', _ROOT, True),
    "keys-add": ("adds a key to the session's keys", 'reach("add_key", b"user", b"escaped", b"1", 1, -3)', _BOTH, True),
    "keys-read": (
        "reads a key of the session",
        """
        room = ctypes.create_string_buffer(200)
        syscall("keyctl", 11, KEY, room, 200)
        print(room.value.decode())
        key, error = syscall("keyctl", 10, -3, b"user", KEY_NAME.encode(), 0)
        syscall("keyctl", 11, key, room, 200)
        print(room.value.decode())
        """,
        _BOTH,
        True,
    ),
    "keys-change": ("changes a key of the session", 'syscall("keyctl", 2, KEY, b"ESCAPED", 7)', _BOTH, True),
    "keys-revoke": (
        "takes a key away from the session",
        'syscall("keyctl", 3, KEY); syscall("keyctl", 9, KEY, -3)',
        _BOTH,
        True,
    ),
    "keys-request": (
        "has the kernel start a program for a key",
        'reach("request_key", b"user", b"handrail-escape-none", b"callout", -3)',
        _BOTH,
        True,
    ),
    "keys-user": (
        "adds a key to the user's keys, which outlive the session",
        'reach("keyctl", 0, -4, 0); reach("keyctl", 0, -5, 0)',
        _BOTH,
        True,
    ),
    "sysrq": ("presses the magic key (opens it only)", 'opened("/proc/sysrq-trigger", os.O_WRONLY)', _ROOT, True),
    "sysctl": (
        "opens the kernel's settings to write to them",
        """
        for path in (
            "kernel/core_pattern",
            "kernel/modprobe",
            "kernel/hostname",
            "kernel/sysrq",
            "vm/drop_caches",
            "kernel/panic",
            "fs/suid_dumpable",
            "net/ipv4/ip_forward",
            "user/max_user_namespaces",
        ):
            opened(f"/proc/sys/{path}", os.O_WRONLY)
        """,
        _ROOT,
        False,
    ),
    "sysfs": (
        "opens what steers devices and the kernel",
        """
        for path in (
            "/sys/kernel/uevent_helper",
            "/sys/power/state",
            "/sys/kernel/profiling",
            "/sys/kernel/mm/ksm/run",
            *glob.glob("/sys/class/net/*/mtu"),
            *glob.glob("/sys/block/*/queue/scheduler"),
        ):
            opened(path, os.O_WRONLY)
        """,
        _ROOT,
        True,
    ),
    "release-agent": (
        "opens the program that a cgroup starts outside",
        """
        for path in (
            glob.glob("/sys/fs/cgroup/*/release_agent")
            + glob.glob("/sys/fs/cgroup/*/notify_on_release")
            + glob.glob("/sys/fs/cgroup/cgroup.procs")
        ):
            opened(path, os.O_WRONLY)
        """,
        _ROOT,
        True,
    ),
    "binfmt": (
        "registers an interpreter for everybody",
        'opened("/proc/sys/fs/binfmt_misc/register", os.O_WRONLY)',
        _ROOT,
        True,
    ),
    "core-pattern": (
        "writes where the kernel sends crashed programs",
        """
        now = open("/proc/sys/kernel/core_pattern", "rb").read()
        os.write(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY), now)
        print("REACHED core_pattern")
        """,
        _ROOT,
        False,
    ),
    "proc-files": (
        "opens any file of /proc that is not a process's to write to it",
        """
        for folder, folders, names in os.walk("/proc"):
            folders[:] = [
                name
                for name in folders
                if not name.isdigit()
                and name not in ("self", "thread-self", "pressure")
                and not (folder == "/proc/sys" and name == "net")
            ]
            for name in names:
                path = os.path.join(folder, name)
                if os.access(path, os.W_OK) and not path.endswith("sysrq-trigger"):
                    opened(path, os.O_WRONLY)
        """,
        _ROOT,
        False,
    ),
    "sys-files": (
        "opens any file of /sys to write to it",
        """
        seen = 0
        for folder, folders, names in os.walk("/sys"):
            for name in names:
                path = os.path.join(folder, name)
                if seen < 3 and os.access(path, os.W_OK):
                    opened(path, os.O_WRONLY)
                    seen += 1
        """,
        (),
        False,
    ),
    "device-files": (
        "opens any device that is not an ordinary one",
        """
        usual = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
        for folder, folders, names in os.walk("/dev"):
            for name in names:
                path = os.path.join(folder, name)
                if (
                    name in usual
                    or "/pts" in folder
                    or not stat.S_ISCHR(os.stat(path).st_mode)
                    and not stat.S_ISBLK(os.stat(path).st_mode)
                ):
                    continue
                if in_own_pid_namespace() or name == "kmsg":
                    opened(path, os.O_RDONLY)
        """,
        (),
        False,
    ),
    "uid-map": (
        "maps users anew",
        r"""
        for path in (f"/proc/{OUTSIDER}/uid_map", "/proc/self/uid_map", f"/proc/{RUNTIME}/gid_map"):
            attempt(lambda: (os.write(os.open(path, os.O_WRONLY), b"0 0 1\n"), print("REACHED", path)))
        attempt(lambda: os.setuid(0) if os.getuid() else None)
        """,
        (),
        False,
    ),
    "old-doors": (
        "uses calls that nobody needs any more",
        """
        reach("lookup_dcookie", 0, None, 0) if X86 else None
        reach("modify_ldt", 1, bytes(16), 16) if X86 else None
        """,
        (),
        True,
    ),
}

# 32-bit and x32 calls come by other numbers than those that a filter for 64 bits knows.
_MACHINE_CODE = """
if not X86: return
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# push rbx; mov eax, edi; mov ebx, esi; mov ecx, edx; xor edx, edx; int 0x80; pop rbx; ret
memory.write(bytes.fromhex("53 89f8 89f3 89d1 31d2 cd80 5b c3"))
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(at)
"""


def _in_machine_code(lines: str) -> str:
    return _MACHINE_CODE + dedent(lines)


CASES = [
    *(
        Case(
            id=f"kernel/{name}",
            family="kernel",
            tries=tries,
            program=lines,
            real_for=real_for,
            host_may_refuse=differs,
        )
        for name, (tries, lines, real_for, differs) in _DOORS.items()
    ),
    Case(
        id="kernel/32-bit",
        family="kernel",
        tries="makes a call as 32-bit programs do",
        program=_in_machine_code(
            """
        got = call(20, 0, 0)
        print("REACHED getpid" if got == os.getpid() else "refused", got)
        """
        ),
        host_may_refuse=True,
        survives=False,
    ),
    Case(
        id="kernel/32-bit-socket",
        family="kernel",
        tries="makes a netlink socket as 32-bit programs do",
        program=_in_machine_code(
            """
        got = call(359, 16, 3)
        print("REACHED socket" if got >= 0 else "refused", got)
        """
        ),
        host_may_refuse=True,
        survives=False,
    ),
    Case(
        id="kernel/32-bit-unshare",
        family="kernel",
        tries="makes namespaces as 32-bit programs do",
        program=_in_machine_code(
            """
        got = call(310, 0x10000000, 0)
        print("REACHED unshare" if got == 0 else "refused", got)
        """
        ),
        host_may_refuse=True,
        survives=False,
    ),
    Case(
        id="kernel/32-bit-program",
        family="kernel",
        tries="runs a 32-bit program",
        # A whole ELF file of 32 bits: write(1, "REACHED", 7); exit(0).
        program="""
        if not X86: return
        code = bytes.fromhex("b804000000 bb01000000 b97a800408 ba08000000 cd80 b801000000 31db cd80")
        code = code.ljust(38, b"\\x90")
        header = bytes.fromhex("7f454c46010101000000000000000000 0200 0300 01000000 54800408 34000000")
        header += bytes.fromhex("00000000 00000000 3400 2000 0100 0000 0000 0000")
        segment = bytes.fromhex("01000000 00000000 00800408 00800408 90000000 90000000 05000000 00100000")
        open("small", "wb").write(header + segment + code + b"REACHED\\n".ljust(22, b"\\0"))
        os.chmod("small", 0o755)
        print(run("./small"))
        """,
        host_may_refuse=True,
    ),
    Case(
        id="kernel/x32",
        family="kernel",
        tries="makes calls by their x32 numbers",
        program="""
        if X86:
            for number in (39, 101, 165, 272, 308, 425):
                reach(number | 0x40000000, 0, 0, 0, 0)
        """,
        real_for=(),
        survives=False,
    ),
    Case(
        id="kernel/host-name",
        family="kernel",
        tries="gives the machine another name",
        program="""
        assert in_own_pid_namespace()
        syscall("sethostname", b"escaped", 7)
        """,
        harmless=False,
        not_tried_at=(1, 0),
    ),
    Case(
        id="kernel/clock-now",
        family="kernel",
        tries="sets the clock to what it shows",
        program="""
        now = struct.pack("qq", *divmod(time.time_ns(), 10**9))
        reach("clock_settime", 0, now)
        reach("settimeofday", struct.pack("qq", *divmod(time.time_ns() // 1000, 10**6)), None)
        """,
        harmless=False,
    ),
]
