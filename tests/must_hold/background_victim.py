"""Starts process sessions, says which, and waits to be killed while another command is waited for."""

import sys
import threading

from handrail import Handrail
from handrail.protocol.events import ToolCallUpdate
from handrail.settings import Settings

COMMANDS = ("cat", "python3 -q -i", "seq 1 20000; sleep 1000")


def main() -> None:
    """Arguments: workspace, state folder, how many of each. A line has the id of each; the last says that all is up."""
    workspace, state, count = sys.argv[1:]
    rail = Handrail(workspace, mode="full", session="s", state_dir=state, settings=Settings())
    for command in COMMANDS * int(count):
        data = rail.exec(command, background=True).data
        assert data is not None
        sys.stdout.write(f"{data.session_id} {command}\n")
    waiting = threading.Event()
    rail.subscribe(lambda event: waiting.set() if isinstance(event, ToolCallUpdate) else None)
    threading.Thread(target=lambda: rail.exec("while echo on; do sleep 0.1; done", yield_ms=600_000)).start()
    waiting.wait(60)
    sys.stdout.write("up\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
