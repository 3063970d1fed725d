"""The command line that exec would use, without what is ours in it: what bubblewrap itself takes."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from handrail.sandbox.profile import CommandOrigin, SandboxHost, SandboxProfile
from handrail.sandbox.sandbox import CommandSandbox

DROPPED = {"--json-status-fd", "--seccomp"}


def bare_command(roots: tuple[str, ...], state: Path, trust: CommandOrigin) -> Callable[[], None]:
    """A function that runs `true` in bubblewrap with the mounts that a command of this trust has; the first root is
    where it starts."""
    host = SandboxHost(
        home=os.path.realpath(os.path.expanduser("~")), environ=os.environ, state=os.path.realpath(state)
    )
    confinement = SandboxProfile(
        origin=trust,
        cwd=roots[0],
        read_only=roots if trust == "proven" else (),
        writable=() if trust == "proven" else roots,
    )
    with CommandSandbox(host, most=2, least=2).launch(confinement, "true") as launch:
        argv = [*without_ours(spelt_out(launch.argv))]
        environment = {name: value for name, value in launch.environment.items() if name != "BASH_ENV"}

    def run() -> None:
        subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=True,
        )

    return run


def minimal_command() -> Callable[[], None]:
    """A function that runs `true` in bubblewrap with the fewest options that confine it."""
    argv = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent"]

    def run() -> None:
        subprocess.run([*argv, "true"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)

    return run


def spelt_out(argv: tuple[str, ...]) -> Iterator[str]:
    """The words with those of a file that they name in its place."""
    words = iter(argv)
    for word in words:
        if word == "--args":
            listed = os.pread(int(next(words)), 1 << 20, 0)
            yield from map(os.fsdecode, listed.split(b"\0")[:-1])
        else:
            yield word


def without_ours(argv: Iterator[str]) -> Iterator[str]:
    """The words without status and filter; what bash reads first, the guard, comes by a variable."""
    for word in argv:
        if word in DROPPED:
            next(argv)
        else:
            yield word
