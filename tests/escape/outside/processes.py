"""A process outside, and everything that others could change about it."""

import contextlib
import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.escape.outside.files import SECRET

_PROGRAM = Path(__file__).with_name("outsider.py")
_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}
_LIBC = ctypes.CDLL(None, use_errno=True)


class Processes:
    """Starts the outsider, tells how it is, starts another one where it has suffered."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "outside-process"
        self.build()

    def build(self) -> None:
        self.close()
        self.folder.mkdir(exist_ok=True)
        held = self.folder / "held"
        held.write_text(SECRET)
        self.outsider = subprocess.Popen(
            ["/usr/bin/python3", "-S", _PROGRAM, held, SECRET],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={"OUTSIDER_SECRET": SECRET, "PATH": "/usr/bin"},
            process_group=0,
        )
        assert self.outsider.stdout is not None
        self.address, self.held = map(int, self.outsider.stdout.readline().split())

    def constants(self) -> dict[str, object]:
        return {
            "OUTSIDER": self.outsider.pid,
            "ADDRESS": self.address,
            "HELD": self.held,
            "RUNTIME": os.getpid(),
            "OUTER_PID_NAMESPACE": os.readlink("/proc/self/ns/pid"),
        }

    def fingerprint(self) -> dict[str, object]:
        pid = self.outsider.pid
        state = _state(pid)
        if state not in {"S", "R"}:
            return {"outsider's state": state}
        return {
            "outsider's state": "alive",
            "what the outsider says": self._asked(),
            "outsider's tracer": _line(pid, "status", "TracerPid"),
            "outsider's nice": os.getpriority(os.PRIO_PROCESS, pid),
            "outsider's processors": sorted(os.sched_getaffinity(pid)),
            "outsider's scheduler": os.sched_getscheduler(pid),
            "outsider's input priority": _LIBC.syscall(_IOPRIO_GET.get(os.uname().machine, 252), 1, pid),
            "outsider's limits": [resource.prlimit(pid, one) for one in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)],
            "outsider's oom_score_adj": Path(f"/proc/{pid}/oom_score_adj").read_text(),
            "outsider's group": os.getpgid(pid),
            "runtime's nice": os.getpriority(os.PRIO_PROCESS, 0),
            "runtime's oom_score_adj": Path("/proc/self/oom_score_adj").read_text(),
            "runtime's limits": [resource.getrlimit(one) for one in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)],
            "runtime's cgroups": Path("/proc/self/cgroup").read_text(),
        }

    def close(self) -> None:
        if outsider := getattr(self, "outsider", None):
            outsider.kill()
            for end in (outsider.stdin, outsider.stdout):
                with contextlib.suppress(OSError):
                    end.close()
            outsider.wait()

    def _asked(self) -> str:
        assert self.outsider.stdin is not None
        assert self.outsider.stdout is not None
        self.outsider.stdin.write("?\n")
        self.outsider.stdin.flush()
        return self.outsider.stdout.readline()


def marked(mark: str) -> list[int]:
    """The processes, but for this one, that have the mark in their command line."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b""
            if mark.encode() in line and int(name) != os.getpid() and _state(int(name)) not in {"Z", "gone"}:
                found.append(int(name))
    return found


def gone(anybody: Callable[[], object], seconds: float) -> bool:
    """Whether there is nobody any more before the time is over."""
    until = time.monotonic() + seconds
    while anybody():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def _state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "gone"


def _line(pid: int, file: str, name: str) -> str:
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    return next(line for line in lines if line.startswith(name))
