"""Starts a command under a supervisor as a runtime does, says the supervisor's number, and waits to be killed."""

import sys
from pathlib import Path

from supervising import a_host, confined, start

from handrail.sandbox.landlock import launch_supervised

if __name__ == "__main__":
    folder, tier, text = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    held = launch_supervised(confined(folder / "workspace"), a_host(folder), text, tier)
    process = start(held)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    print(process.pid, flush=True)
    sys.stdin.read()
