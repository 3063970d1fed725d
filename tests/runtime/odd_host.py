"""A program that uses the library and is odd in one way; writes what came of its commands to a file, as JSON.

Arguments: workspace, state folder, the tier, the oddity, the file, the commands.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Sandbox


def standard_streams_closed() -> None:
    for descriptor in (0, 1, 2):
        os.close(descriptor)


def children_ignored() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def children_reaped() -> None:
    def reap(*_: Any) -> None:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass

    signal.signal(signal.SIGCHLD, reap)


def signals_blocked() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def signals_ignored() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def folder_deleted() -> None:
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")


def bytes_in_the_environment() -> None:
    os.environb[b"LANG"] = os.environb[b"STRANGE\xff"] = b"\xfe"
    os.environb[b"PATH"] += b":/\xff"


ODDITIES: dict[str, Callable[[], None]] = {
    oddity.__name__: oddity
    for oddity in (
        standard_streams_closed, children_ignored, children_reaped, signals_blocked, signals_ignored, folder_deleted,
        bytes_in_the_environment,
    )
}  # fmt: skip


def main() -> None:
    workspace, state, tier, oddity, told, *commands = sys.argv[1:]
    settings = Settings(sandbox=Sandbox(tier=int(tier)))
    with Handrail(workspace, mode="full", state_dir=state, settings=settings) as rail:
        ODDITIES[oddity]()  # after the session is open: what it has open must not fill the gaps by chance
        results = [rail.exec(command, timeout_ms=20_000) for command in commands]
    answers = [(result.error.message if result.error else result.content, result.meta.sandbox) for result in results]
    Path(told).write_text(json.dumps([(text, used.tier if used else None) for text, used in answers]))


if __name__ == "__main__":
    main()
