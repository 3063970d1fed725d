"""Writes files without end and says which calls have returned, until it is killed."""

import itertools
import random
import sys

from crowd import checked_text

from handrail import Handrail
from handrail.settings import Settings


def main() -> None:
    """Arguments: workspace, state folder, session, seed. A line `ID CODE PATH` says that a call has returned."""
    workspace, state, session, seed = sys.argv[1:]
    draw = random.Random(seed)
    rail = Handrail(workspace, mode="auto", session=session, state_dir=state, settings=Settings())
    for number in itertools.count():
        path = f"{draw.choice('abc')}.txt" if draw.random() < 0.8 else f"deep/{seed}/{number}/new.txt"
        result = rail.write(path, checked_text(f"{seed}/{number}", draw.randrange(1, 5000)))
        sys.stdout.write(f"{result.tool_call_id} {result.error.code if result.error else 'ok'} {path}\n")
        sys.stdout.flush()
        if not result.ok:
            rail.read(path)  # an earlier write was cut off: look first, as its result said


if __name__ == "__main__":
    main()
