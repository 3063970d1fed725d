"""Many sessions side by side in one process: the memory and the descriptors that they take, and whether every one of
them told all of its events, in order."""

import json
import subprocess
import sys
from collections.abc import Iterator

from bench.measure import Row

LIMIT_MB = 1024.0


def crowd() -> Iterator[Row]:
    """In a process of its own, since memory is measured."""
    done = subprocess.run([sys.executable, "-m", "bench.loop.crowded"], stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    yield Row(f"{found['sessions']} sessions at once, most memory", found["megabytes"], "MB", LIMIT_MB)
    yield Row(f"{found['sessions']} sessions at once, events lost or out of order", found["lost"], "", 0)
    yield Row(f"{found['sessions']} sessions at once, all of it", found["seconds"], "s")
    yield Row("a session, memory", found["megabytes_each"] * 1024, "KB")
    yield Row("a session, descriptors", found["descriptors_each"], "")
