"""Opens sessions that start commands, each in a process of its own that says its number and waits to be killed."""

import contextlib
import itertools
import os
import subprocess
import sys
import threading
from typing import Any

from handrail import Handrail
from handrail.process import run
from handrail.settings import Settings

_AT_ONCE = 5


def main() -> None:
    """Arguments: workspace, state folder. For each line a session is opened. The line has the session's name, a word
    that its commands have in their text, and what it does: `start` commands, or `wait` in the middle of a start."""
    workspace, state = sys.argv[1:]
    for line in sys.stdin:
        session, mark, what = line.split()
        if os.fork() == 0:
            rail = Handrail(workspace, mode="full", session=session, state_dir=state, settings=Settings())
            rail.exec("bash -c true")  # what the sandbox can do is found out once, and takes its time
            {"start": _start, "wait": _wait}[what](rail, f"bash -c 'true {mark}'")
            threading.Event().wait()
        os.wait()


def _start(rail: Handrail, command: str) -> None:
    """Starts commands without end, several at once."""
    ready = threading.Barrier(_AT_ONCE + 1)

    def run() -> None:
        ready.wait()
        for _ in itertools.count():
            rail.exec(command)

    for _ in range(_AT_ONCE):
        threading.Thread(target=run, daemon=True).start()
    ready.wait()
    _tell()


def _wait(rail: Handrail, command: str) -> None:
    """Has bubblewrap wait at the moment from which nobody would end its process inside: it writes to a full pipe."""
    _, full = os.pipe()
    os.set_blocking(full, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(full, bytes(4096)):
            pass
    os.set_blocking(full, True)

    def popen(argv: tuple[str, ...], **options: Any) -> subprocess.Popen[bytes]:
        at = argv.index("--args")
        options["pass_fds"] = (*options["pass_fds"], full)
        return subprocess.Popen((*argv[:at], "--info-fd", str(full), *argv[at:]), **options)

    run.subprocess = type(sys)("subprocess")
    run.subprocess.Popen = popen  # type: ignore[attr-defined]
    threading.Thread(target=rail.exec, args=(command,), daemon=True).start()
    _tell()


def _tell() -> None:
    sys.stdout.write(f"{os.getpid()}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
