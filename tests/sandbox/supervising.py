"""Runs commands under a real supervisor, and looks for what they leave behind."""

import json
import os
import select
import sys
from pathlib import Path
from typing import Any, NamedTuple

from namespaces import start

from handrail.sandbox.landlock import launch_supervised
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import SandboxHost, SandboxProfile

PYTHON = os.path.realpath(sys.executable)
ENDED_WITHIN = 30.0


class Outcome(NamedTuple):
    exit_code: int
    output: str
    status: list[dict[str, int]]


def a_host(folder: Path, **fields: Any) -> SandboxHost:
    """A machine whose home and state are folders of the test's own."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return SandboxHost(
        **{
            "home": str(home),
            "environ": {"PATH": os.defpath, "SECRET_TOKEN": "hunter2"},
            "state": str(folder / "state"),
            "toolchains": (sys.base_prefix,),
            **fields,
        }
    )


def confined(root: Path, trust: str = "unasked", **fields: Any) -> SandboxProfile:
    """A command in a root that it may change, unless it only looks."""
    roots: dict[str, Any] = (
        {"read_only": (str(root),)} if trust == "proven" else {"read_only": (), "writable": (str(root),)}
    )
    return SandboxProfile(**{"origin": trust, "cwd": str(root), **roots, **fields})


def run(confinement: SandboxProfile, host: SandboxHost, text: str, tier: int = 1) -> Outcome:
    """Runs a command to its end."""
    with launch_supervised(confinement, host, text, tier) as launch, start(launch) as process:
        output = process.communicate(timeout=60)[0]
        return Outcome(process.returncode, output.decode(errors="replace"), status_of(launch))


def status_of(launch: Launch) -> list[dict[str, int]]:
    """The documents that the supervisor wrote until it ended."""
    with open(launch.status, "rb", closefd=False) as file:
        return [json.loads(line) for line in file]


def processes_with(mark: str) -> list[int]:
    """Processes whose command line holds the mark."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark.encode() in Path("/proc", name, "cmdline").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def ends(process: int, within: float = ENDED_WITHIN) -> bool:
    """Whether the process behind a pidfd ends in time."""
    events = select.poll()
    events.register(process, select.POLLIN)
    return bool(events.poll(within * 1_000))
