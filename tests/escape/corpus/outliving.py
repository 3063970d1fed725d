"""Staying after the call is over, and writing then. The harness makes `go` once the call has returned."""

from textwrap import dedent

from tests.escape.case import Case

_STAYING = {
    "background": (
        "leaves a child in the background",
        """
        if os.fork() == 0:
            stay()
        """,
    ),
    "session": (
        "leaves a child in a session of its own",
        """
        if os.fork() == 0:
            os.setsid()
            stay()
        """,
    ),
    "double-fork": (
        "leaves a grandchild whose parent is gone",
        """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                stay()
            os._exit(0)
        """,
    ),
    "deaf": (
        "leaves a child that hears no signal",
        """
        if os.fork() == 0:
            os.setsid()
            for number in range(1, 65):
                attempt(signal.signal, number, signal.SIG_IGN) if number not in (9, 19, 32, 33) else None
            stay()
        """,
    ),
    "renamed": (
        "leaves a child under another name",
        """
        if os.fork() == 0:
            os.setsid()
            libc.prctl(15, b"kworker/0:1", 0, 0, 0)
            stay()
        """,
    ),
    "silent": (
        "leaves a child that has closed all its descriptors",
        """
        if os.fork() == 0:
            os.setsid()
            os.closerange(0, 100)
            stay()
        """,
    ),
    "exec": (
        "leaves another program",
        """
        os.symlink(sys.executable, "other")
        subprocess.Popen(["./other", __file__, "stay"], start_new_session=True)
        """,
    ),
    "breeding": (
        "leaves a child that becomes another one all the time",
        """
        if os.fork() == 0:
            os.setsid()
            until = time.monotonic() + 30
            while time.monotonic() < until:
                if os.fork():
                    os._exit(0)
                if os.path.exists(GO):
                    open(LATE, "w").write("ESCAPED")
                    os._exit(0)
                time.sleep(0.002)
            os._exit(0)
        """,
    ),
    "thread-of-first": (
        "ends its first thread and goes on in another",
        """
        child = os.fork()
        if child == 0:
            threading.Thread(target=stay).start()
            libc.syscall(60 if X86 else 93, 0)
        until = time.monotonic() + 2
        while time.monotonic() < until and ") Z" not in open(f"/proc/{child}/stat").read():
            time.sleep(0.005)
        """,
    ),
    "subreaper": (
        "makes itself the parent of orphans, and them too",
        """
        if os.fork() == 0:
            libc.prctl(36, 1, 0, 0, 0)
            os.setsid()
            if os.fork() == 0:
                if os.fork() == 0:
                    stay()
                os._exit(0)
            stay()
        """,
    ),
    "vfork-stopped": (
        "leaves a stopped child that another one wakes",
        """
        child = os.fork()
        if child == 0:
            os.setsid()
            os.kill(os.getpid(), signal.SIGSTOP)
            stay()
        if os.fork() == 0:
            os.setsid()
            time.sleep(0.3)
            os.kill(child, signal.SIGCONT)
            os._exit(0)
        """,
    ),
}

_STAY = """
GO, LATE = f"{FREE}/go", f"{FREE}/late"
def stay():
    until = time.monotonic() + 30
    while not os.path.exists(GO) and time.monotonic() < until: time.sleep(0.005)
    if os.path.exists(GO): open(LATE, "w").write("ESCAPED")
    os._exit(0)
if sys.argv[-1] == "stay": stay()
# Whoever of them is alive holds it, whatever its name is by then.
fcntl.flock(os.open(f"{FREE}/alive", os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
"""
_SHELL_STAY = """
(WORD bash -c '
    for i in {1..2000}; do
        [ -e "$1/go" ] && echo ESCAPED > "$1/late" && exit
        sleep 0.01
    done
' "$0" "$FREE" >/dev/null 2>&1 &)
disown -a
"""
_SHELLS = {
    "nohup": ("leaves a program that hears no hang-up", "nohup"),
    "setsid": ("leaves a program by setsid(1)", "setsid -f"),
    "disown": ("leaves a program that the shell forgets", ""),
}

CASES = [
    *(
        Case(
            id=f"outliving/{name}",
            family="outliving",
            tries=tries,
            program=f"{_STAY}\n{dedent(lines)}\ntime.sleep(0.05)",
            floor=True,
        )
        for name, (tries, lines) in _STAYING.items()
    ),
    *(
        Case(
            id=f"outliving/{name}",
            family="outliving",
            tries=tries,
            shell=True,
            floor=True,
            program=_SHELL_STAY.replace("WORD", word),
        )
        for name, (tries, word) in _SHELLS.items()
    ),
]
