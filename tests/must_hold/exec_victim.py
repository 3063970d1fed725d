"""Runs commands without end and says which calls have returned, until it is killed."""

import itertools
import random
import sys

from handrail import Handrail
from handrail.settings import Settings

LOOKING = ("echo {0}", "echo {0}; seq 1 900000", "seq 1 20000; echo {0}")
"""Proven to only read; the second prints more than memory holds."""
WRITING = ("echo x > made; sleep {0} & sleep 0.01", "echo {0}; seq 1 900000; touch made", "sleep {0} & sleep {0}")


def main() -> None:
    """Arguments: workspace, state folder, session, seed, seconds that only its commands sleep. A line says that a call
    has returned: its id and how."""
    workspace, state, session, seed, mark = sys.argv[1:]
    draw = random.Random(seed)
    rail = Handrail(workspace, mode="full", session=session, state_dir=state, settings=Settings())
    rail.exec("bash -c 'touch made'")  # what the sandbox can do is found out once, and takes its time
    for _ in itertools.count():
        command = draw.choice(LOOKING + WRITING).format(mark)
        sys.stdout.write(f"calling {command}\n")
        sys.stdout.flush()
        result = rail.exec(command, timeout_ms=200)
        sys.stdout.write(f"{result.tool_call_id} {result.error.code if result.error else 'ok'}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
