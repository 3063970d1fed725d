"""A tree of processes that does what it can to outlive the command it came from. Runs inside the sandbox, on its own.

Arguments: the plan as JSON (tree_plans.py makes them), and where to make a FIFO that every process holds open. In it
each process says who it is, at birth: its number, when it started and its space of numbers; the first says `ready`
once everybody is up. Nobody lives longer than LIFETIME seconds, whatever happens outside.
"""

import contextlib
import ctypes
import json
import os
import platform
import signal
import sys
import threading
import time
from typing import Any

LIFETIME = 120
RUN = 60
"""Seconds; whoever runs takes a processor."""
ALIVE, UP = 60, 61
"""The descriptors of the FIFO and of the pipe that counts who is up; they pass through every exec."""
SCRIPT, INTERPRETER = os.path.abspath(__file__), os.readlink("/proc/self/exe")
LIBC = ctypes.CDLL(None, use_errno=True)
FALLBACK = {"x86_64": (56, 60), "aarch64": (220, 93)}
CLONE, EXIT = FALLBACK.get(platform.machine(), (0, 0))
"""The numbers of clone and of the exit of one thread."""
CLONE_PARENT = 0x8000
SET_CHILD_SUBREAPER, SET_NAME, SET_DUMPABLE = 36, 15, 4
DEAF_TO = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGPIPE", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXCPU", "SIGXFSZ")


def main() -> None:
    if sys.argv[1] == "--node":
        alone(lambda: go_on(json.loads(sys.argv[2])))
    plan = json.loads(sys.argv[1])
    # Made here and under its name at once: those that were there before, a sandbox covers.
    os.mkfifo(f"{sys.argv[2]}.new")
    os.rename(f"{sys.argv[2]}.new", sys.argv[2])
    alive = os.open(sys.argv[2], os.O_WRONLY)  # waits for who watches
    os.dup2(alive, ALIVE)
    os.close(alive)
    counted, up = os.pipe()
    os.dup2(up, UP)
    os.close(up)
    say_who()
    for child in plan["children"]:
        start(child)
    for _ in range(size(plan) - 1):
        os.read(counted, 1)
    for trait in plan["traits"]:
        TRAITS[trait]()
    with contextlib.suppress(OSError):
        os.write(ALIVE, b"ready\n")
    if plan["closed"]:
        close_everything()
    LIVES[plan["life"]]()


def size(plan: dict[str, Any]) -> int:
    return 1 + sum(size(child) for child in plan["children"])


def say_who() -> None:
    with open("/proc/self/stat", encoding="utf-8") as file:
        started = file.read().rpartition(")")[2].split()[19]
    os.write(ALIVE, f"{os.getpid()} {started} {os.readlink('/proc/self/ns/pid')}\n".encode())


def start(node: dict[str, Any]) -> None:
    """Brings one process of the plan into the world, in the way the plan says."""
    BIRTHS[node["birth"]](lambda: begin(node))


def begin(node: dict[str, Any]) -> None:
    say_who()
    if node["renamed"]:  # another program, another name, no environment: nothing is left to know it by
        again = json.dumps(node | {"renamed": None})
        os.chdir("/")  # an interpreter does not start in a folder that is gone
        os.execve(INTERPRETER, [node["renamed"], "-I", "-S", SCRIPT, "--node", again], {})
    go_on(node)


def go_on(node: dict[str, Any]) -> None:
    for trait in node["traits"]:
        TRAITS[trait]()
    for child in node["children"]:
        start(child)
    os.write(UP, b".")
    if node["closed"]:
        close_everything()
    LIVES[node["life"]]()


def close_everything() -> None:
    os.closerange(0, 4096)


# How a process comes to be


def fork(body: Any) -> None:
    if os.fork() == 0:
        alone(body)


def orphan(body: Any) -> None:
    chain(body, 1)


def chain(body: Any, links: int = 6) -> None:
    """Each parent in turn goes away, so that the last one's is whoever takes in orphans."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    for _ in range(links):
        if os.fork():
            os._exit(0)
        os.setsid()
    alone(body)


def silent(body: Any) -> None:
    """Its parent hears no signal when it ends, and does not see it when it waits as usual."""
    raw_clone(body, 0)


def sibling(body: Any) -> None:
    """Not its maker's child: its parent's."""
    raw_clone(body, CLONE_PARENT | signal.SIGCHLD)


def raw_clone(body: Any, flags: int) -> None:
    made = LIBC.syscall(CLONE, flags, 0, 0, 0, 0) if CLONE else -1
    if made == 0:
        alone(body)
    if made < 0:
        fork(body)


def from_thread(body: Any) -> None:
    """Its maker is a thread that ends at once."""
    thread = threading.Thread(target=fork, args=(body,))
    thread.start()
    thread.join()


def vfork(body: Any) -> None:
    """A child that shares its parent's memory and never lets it go on: the parent cannot be interrupted meanwhile."""
    if os.fork() == 0:
        say_who()
        if ctypes.PyDLL(None).vfork() == 0:
            alone(body)
        os._exit(1)


def alone(body: Any) -> None:
    try:
        body()
    except BaseException as error:
        os.write(ALIVE, f"trouble {error!r}\n".encode())
    finally:
        os._exit(1)


BIRTHS = {
    "fork": fork, "orphan": orphan, "chain": chain, "silent": silent, "sibling": sibling, "from_thread": from_thread,
    "vfork": vfork,
}  # fmt: skip


# What it does to be left alone


def deaf() -> None:
    for name in DEAF_TO:
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def reborn() -> None:
    """Whoever asks it to end gets two."""

    def twice(*_: object) -> None:
        if os.fork() == 0:
            say_who()

    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        signal.signal(getattr(signal, name), twice)


def in_no_folder() -> None:
    folder = f"{os.path.dirname(SCRIPT)}/gone-{os.getpid()}"
    os.mkdir(folder)
    os.chdir(folder)
    os.rmdir(folder)


def own_session() -> None:
    with contextlib.suppress(PermissionError):  # it leads a group already
        os.setsid()


def own_group() -> None:
    with contextlib.suppress(PermissionError):  # it leads a session already
        os.setpgid(0, 0)


def masked() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


TRAITS = {
    "session": own_session,
    "group": own_group,
    "deaf": deaf,
    "reborn": reborn,
    "masked": masked,
    "elsewhere": lambda: os.chdir("/"),
    "in_no_folder": in_no_folder,
    "takes_in_orphans": lambda: LIBC.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0),
    "named_like_the_kernel": lambda: LIBC.prctl(SET_NAME, b"kworker/0:1"),
    "undumpable": lambda: LIBC.prctl(SET_DUMPABLE, 0, 0, 0, 0),
}


# How it spends its life


def wait() -> None:
    time.sleep(LIFETIME)


def leave() -> None:
    """The first process of the command ends like any other; everybody else is still there."""
    os._exit(0)


def stopped() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)
    wait()


def watching() -> None:
    """Waits for news of a folder."""
    watcher = LIBC.inotify_init1(0)
    LIBC.inotify_add_watch(watcher, b"/tmp", 0x100)
    signal.alarm(LIFETIME)
    while True:
        os.read(watcher, 4096)


def threads() -> None:
    for _ in range(4):
        threading.Thread(target=wait).start()


def leaderless() -> None:
    """Its first thread is gone, so that it looks dead from outside; the others live."""
    threads()
    if EXIT:
        LIBC.syscall(EXIT, 0)
    wait()


def talking() -> None:
    """Prints, and goes on when nobody reads it."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    end = time.monotonic() + LIFETIME
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            os.write(1, b"still here\n" * 20)
        time.sleep(0.01)


def running() -> None:
    """Never the same process for long: each has a child and ends."""
    end = time.monotonic() + RUN
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        say_who_if_open()
        time.sleep(0.001)


def running_apart() -> None:
    """The same, each in a session of its own: no signal to a group reaches the next."""
    end = time.monotonic() + RUN
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep(0.001)


def storm() -> None:
    """Up to 24 at a time, in sessions of their own; whoever ends is replaced."""
    end, alive = time.monotonic() + LIFETIME, 0
    while time.monotonic() < end:
        if alive == 24:
            os.wait()
            alive -= 1
        if os.fork() == 0:
            say_who_if_open()
            own_session()
            time.sleep(0.3)
            os._exit(0)
        alive += 1


def say_who_if_open() -> None:
    with contextlib.suppress(OSError):
        say_who()


def shell() -> None:
    """Programs that a shell leaves behind, deaf to the end of their terminal, one under another's name."""
    text = (
        "trap '' TERM HUP INT; nohup sleep {0} >/dev/null 2>&1 & setsid sleep {0} & (sleep {0} & disown) ; "
        "exec -a systemd sleep {0}"
    )
    os.execve("/bin/bash", ["-bash", "-c", text.format(LIFETIME)], {"PATH": "/usr/bin:/bin"})


def fileless() -> None:
    """A program that lies in no file."""
    memory = os.memfd_create("x", 0)
    with open("/bin/sleep", "rb") as program:
        os.write(memory, program.read())
    os.execve(f"/proc/self/fd/{memory}", ["[kthreadd]", str(LIFETIME)], {})


def busy() -> None:
    os.nice(19)
    end = time.monotonic() + LIFETIME
    while time.monotonic() < end:
        pass


LIVES = {
    "wait": wait, "leave": leave, "stopped": stopped, "watching": watching, "threads": threads, "running": running,
    "running_apart": running_apart, "leaderless": leaderless, "talking": talking, "storm": storm, "shell": shell,
    "fileless": fileless, "busy": busy,
}  # fmt: skip

if __name__ == "__main__":
    main()
