"""Plays the session of twelve calls, each time in a process of its own, which kills itself at a moment of a number.

A line on stdin is `WORKSPACE STATE NUMBER`, the number 0 for a play to its end; the lines on stdout are the id of the
process, and how it ended: 2 where somebody else was at work, whose words are in `refused.txt` then. The names of the
moments that a whole play had are in the state folder's `moments.json`. All are forked from one that has imported
everything and knows what the sandbox can do, so that a play costs little more than its calls. Argument: a folder for
finding that out.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from loop_script import opened, play
from moments import Moments

from handrail import Handrail
from handrail.protocol.errors import UsageError
from handrail.settings import Settings


async def whole(workspace: Path, state: Path) -> None:
    """A play to its end."""
    async with opened(workspace, state) as rail:
        await play(rail)


def warm_up(folder: Path) -> None:
    """What a process finds out once."""
    (folder / "workspace").mkdir(parents=True)
    with Handrail(folder / "workspace", mode="auto", state_dir=folder / "state", settings=Settings()) as rail:
        assert rail.exec("bash -c 'touch made'").ok


def main() -> None:
    warm_up(Path(sys.argv[1]))
    for line in sys.stdin:
        workspace, state, number = line.split()
        child = os.fork()
        if child == 0:
            die_at(Path(workspace), Path(state), int(number))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def die_at(workspace: Path, state: Path, number: int) -> None:
    """Plays in this process, and ends it."""
    moments = Moments(number or None)
    moments.watch()
    try:
        asyncio.run(whole(workspace, state))
    except UsageError as error:
        (state / "refused.txt").write_text(str(error))
        os._exit(2)
    (state / "moments.json").write_text(json.dumps(moments.names))
    os._exit(0)


if __name__ == "__main__":
    main()
