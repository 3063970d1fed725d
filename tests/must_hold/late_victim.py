"""Runs batches whose second call is parked late, answers them, and says how far it is, until it is killed."""

import itertools
import sys
from datetime import UTC, datetime
from typing import Any

from handrail import Handrail, Parked, ToolCall
from handrail.settings import Settings


def call(call_id: str, command: str) -> ToolCall:
    """A call of exec."""
    now, args = datetime.now(UTC), {"command": command}
    return ToolCall(tool_call_id=call_id, name="exec", args=args, trace_id=call_id, timestamp=now)


def batch(mark: str) -> tuple[ToolCall, ...]:
    """Only what the second one changes asks, and only the files tell that."""
    first, last = call(f"{mark}-1", f"echo {mark} > first"), call(f"{mark}-3", f"echo {mark} > last")
    return first, call(f"{mark}-2", f"bash gen.sh {mark}"), last


def main() -> None:
    """Arguments: workspace, state folder, session, what the marks begin with."""
    workspace, state, session, begin = sys.argv[1:]
    rail = Handrail(workspace, mode="auto", session=session, state_dir=state, settings=Settings())
    for number in itertools.count():
        say("calling", f"{begin}.{number}")
        parked: Any = rail.batch(batch(f"{begin}.{number}"))
        if not isinstance(parked, Parked):
            raise AssertionError(parked)
        say("parked", f"{begin}.{number}")
        rail.answer(parked.requests[0].id, "once")
        say("done", f"{begin}.{number}")


def say(*words: str) -> None:
    """In a line of its own."""
    sys.stdout.write(f"{' '.join(words)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
