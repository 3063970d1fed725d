"""Launches by hand: bash in bubblewrap, and bash under a small supervisor that speaks the same protocol."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.process.result import CommandResult
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import ResourceLimits, SandboxHost, SandboxProfile
from handrail.sandbox.sandbox import CommandSandbox

BASH = ("/bin/bash", "--noprofile", "--norc", "-c")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}

# Ends the command's own process group when the lifeline is closed: who leaves that group gets away.
_SUPERVISOR = """
exec 9>&2 2>/dev/null; set -m
/bin/bash --noprofile --norc -c "$0" {status}>&- {lifeline}<&- 2>&9 9>&- & child=$!
trap '' PIPE
printf '{{"child-pid": %d}}\\n' $child >&{status}
(read -r -u {lifeline}; kill -9 -- -$child) {status}>&- >/dev/null 9>&- & watcher=$!
wait $child; code=$?
kill -9 -- -$child -$watcher
printf '{{"exit-code": %d}}\\n' $code >&{status}
"""

MakeLaunch = Callable[[str], Launch]
Run = Callable[..., CommandResult]


def confined(text: str) -> Launch:
    """Bash in a process namespace of its own."""
    return launched(
        lambda status, lifeline: (
            *("/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--bind", "/", "/", "--proc", "/proc"),
            *("--dev", "/dev", "--json-status-fd", str(status), "--", *BASH, f"exec {lifeline}<&-\n{text}"),
        ),
        own_processes=True,
    )


def supervised(text: str) -> Launch:
    """Bash below a process that ends it."""
    return launched(
        lambda status, lifeline: (*BASH, _SUPERVISOR.format(status=status, lifeline=lifeline), text),
        own_processes=False,
    )


def sandboxed(tier: int, folder: Path) -> Callable[..., Launch]:
    """What makes launches of a real tier, whose command may write in a workspace in the folder; skips where none is."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    (folder / "home").mkdir(exist_ok=True)
    host = SandboxHost(home=str(folder / "home"), environ=dict(os.environ), state=str(folder / "state"))
    sandbox = CommandSandbox(host, most=tier)
    if sandbox.tier != tier:
        pytest.skip(f"no tier {tier} here")

    def make(text: str, limits: ResourceLimits) -> Launch:
        place = str(workspace)
        confinement = SandboxProfile(origin="approved", cwd=place, read_only=(), writable=(place,), limits=limits)
        return sandbox.launch(confinement, text)

    return make


def launched(argv: Callable[[int, int], tuple[str, ...]], *, own_processes: bool) -> Launch:
    """Whatever is wanted, given the numbers of the status and of the lifeline."""
    status, status_inside = os.pipe()
    lifeline_inside, lifeline = os.pipe()
    return Launch(
        tier=2 if own_processes else 0,
        argv=argv(status_inside, lifeline_inside),
        environment=ENVIRONMENT,
        inherited=(status_inside, lifeline_inside),
        status=status,
        lifeline=lifeline,
        own_processes=own_processes,
    )


def running(mark: str) -> list[int]:
    """Processes with that in their command line, which have not ended."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(set(found) - {os.getpid()})


def left_of(make: MakeLaunch, mark: str) -> list[int]:
    """Those that are still there after a run: at once in a namespace, soon where they are killed one by one."""
    if make is not confined:
        comes_true(lambda: running(mark) == [])
    return running(mark)


def comes_true(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether it does within that time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)  # leaves the processor to what it waits for
    return True


def own_children() -> set[int]:
    """Children of this process, also those that have ended and that nobody asked about."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and f"PPid:\t{os.getpid()}\n" in (entry / "status").read_text():
                found.add(int(entry.name))
        except OSError:
            continue
    return found
