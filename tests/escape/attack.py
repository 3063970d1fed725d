"""Programs as they are run: a few words before, the case's own lines, and a sign at the end that it got there."""

import textwrap
from collections.abc import Mapping

from tests.escape.case import Case

TRIED = "TRIED"
REACHED = "REACHED"
HIJACKED = "HIJACKED"

_MODULES = (
    "ctypes", "errno", "fcntl", "glob", "mmap", "os", "resource", "shutil", "signal", "socket", "stat", "struct",
    "subprocess", "sys", "termios", "threading", "time",
)  # fmt: skip
_ALWAYS = {"ctypes", "errno", "os"}

PRELUDE = r'''
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS)
X86 = os.uname().machine == "x86_64"
NUMBERS = {
    "ptrace": (101, 117), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "clone": (56, 220), "clone3": (435, 435), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "userfaultfd": (323, 282), "bpf": (321, 280), "perf_event_open": (298, 241), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "sethostname": (170, 161),
    "setdomainname": (171, 162), "clock_settime": (227, 112), "settimeofday": (164, 170), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116),
    "vhangup": (153, 58), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "kcmp": (312, 272), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "process_madvise": (440, 440), "lookup_dcookie": (212, 18), "tgkill": (234, 131),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "ioprio_set": (251, 30),
    "sched_setattr": (314, 274), "prlimit64": (302, 261), "openat2": (437, 437), "fchmodat2": (452, 452),
    "fchmodat": (268, 53), "fchownat": (260, 54), "utimensat": (280, 88), "setxattrat": (463, 463),
    "file_setattr": (469, 469), "renameat2": (316, 276), "copy_file_range": (326, 285), "process_mrelease": (448, 448),
    "ioperm": (173, None), "iopl": (172, None), "modify_ldt": (154, None), "mq_open": (240, 180),
    "statmount": (457, 457), "listmount": (458, 458), "memfd_secret": (447, 447), "fanotify_mark": (301, 263),
    "mknodat": (259, 33), "get_mempolicy": (239, 236), "uselib": (134, None), "nfsservctl": (180, 42),
}

def syscall(name, *arguments):
    """The kernel's answer, and errno where it is a no."""
    number = name if isinstance(name, int) else NUMBERS[name][0 if X86 else 1]
    if number is None:
        return -1, errno.ENOSYS
    ctypes.set_errno(0)
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    got = libc.syscall(ctypes.c_long(number), *given)
    return got, ctypes.get_errno() if got == -1 else 0

def reach(name, *arguments, refusals=REFUSALS):
    """Says so where the kernel has done more with a call than to refuse it."""
    got, error = syscall(name, *arguments)
    said = errno.errorcode.get(error, error)
    print(("refused" if error in refusals else "REACHED"), name, got, said, flush=True)
    return got

def attempt(function, *arguments, **options):
    """One way of several: that it fails is no reason not to try the next."""
    try:
        return function(*arguments, **options)
    except BaseException as error:
        print("failed:", type(error).__name__, str(error)[:200], flush=True)

def show(path):
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    print(os.read(file, 100_000).decode("latin-1"), flush=True)
    os.close(file)

def overwrite(path):
    with open(path, "r+") as file:
        file.write("ESCAPED")

def create(path):
    with open(path, "x") as file:
        file.write("ESCAPED")

def opened(path, flags):
    """Says so where a file that nobody should get at can be opened; nothing is written to it."""
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))
        print("REACHED", path, flush=True)
    except OSError as error:
        print("refused", path, error.strerror, flush=True)

def in_own_pid_namespace():
    return os.readlink("/proc/self/ns/pid") != OUTER_PID_NAMESPACE

def others():
    """The processes that it may try: where it sees those of the machine, only the harness's own."""
    numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    return numbers if in_own_pid_namespace() else [str(OUTSIDER), str(RUNTIME)]

def run(*words, **options):
    import subprocess
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=20, **options)
    print((done.stdout + done.stderr)[:20_000], flush=True)
    return done.returncode
'''


def text_of(case: Case, constants: Mapping[str, object]) -> str:
    """The whole program, with what it has to know about the outside."""
    if case.shell:
        known = "\n".join(f"{name}={_quoted(str(value))}" for name, value in constants.items())
        return f"{known}\n{textwrap.dedent(case.program)}\necho {TRIED}\n"
    known = "\n".join(f"{name} = {value!r}" for name, value in constants.items())
    body = textwrap.indent(textwrap.dedent(case.program).strip("\n"), "    ")
    # What is not loaded takes no time: most of the time of an attack is Python's start.
    used = [name for name in _MODULES if name in _ALWAYS or f"{name}." in body]
    start = f"import {', '.join(used)}\n{PRELUDE}\n{known}\n"
    return f"{start}\ndef attack():\n{body}\n\nattempt(attack)\nprint({TRIED!r}, flush=True)\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
