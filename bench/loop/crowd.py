"""Many sessions side by side in one process: the memory and the descriptors that they take, whether every one of them
told all of its events, in order, and for how long the event loop of many agents stands still."""

import json
import subprocess
import sys
from collections.abc import Iterator

from bench.measure import Row

SESSIONS = 500
LIMIT_MB = 1024.0
AGENTS = 200
LIMIT_STALL_MS = 250.0


def crowd() -> Iterator[Row]:
    found = _play(SESSIONS)
    yield Row(f"{found['sessions']} sessions at once, most memory", found["megabytes"], "MB", LIMIT_MB)
    yield Row(f"{found['sessions']} sessions at once, events lost or out of order", found["lost"], "", 0)
    yield Row(f"{found['sessions']} sessions at once, all of it", found["seconds"], "s")
    yield Row("a session, memory", found["megabytes_each"] * 1024, "KB")
    yield Row("a session, descriptors", found["descriptors_each"], "")
    stall = _play(AGENTS)["longest_stall"]
    yield Row(f"{AGENTS} agents at once, longest stall of the event loop", stall * 1e3, "ms", LIMIT_STALL_MS)


def _play(sessions: int) -> dict[str, float]:
    """In a process of its own, since memory is measured."""
    command = [sys.executable, "-m", "bench.loop.crowded", str(sessions)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
