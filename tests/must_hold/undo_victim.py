"""Writes, takes back and brings back by a plan that its seed makes, and says how far it is, until it is killed."""

import os
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from handrail import Handrail
from handrail.protocol.calls import ToolCall
from handrail.settings import Settings

LARGE = 600_000
STEPS = 60


def prepare(workspace: Path) -> None:
    """The tree that every play begins with."""
    (workspace / "a.txt").write_text("old a\n")
    (workspace / "linked").mkdir()
    (workspace / "linked" / "one").write_text("old\n" * (LARGE // 4))
    os.link(workspace / "linked" / "one", workspace / "linked" / "other")


def play(rail: Handrail, seed: str) -> Iterator[str]:
    """One step after another, the same for every run of a seed; what kind it was."""
    draw = random.Random(seed)
    for number in range(STEPS):
        kind = draw.choice(["write", "edit", "linked", "several", "undo", "redo", "all"])
        text = f"{seed} {number}\n" * draw.randrange(1, 200)
        if kind == "write":
            rail.write(draw.choice(["a.txt", "b.txt", "deep/er/c.txt", "deep/d.txt"]), text)
        elif kind == "edit":
            rail.edit(draw.choice(["a.txt", "b.txt", "linked/one"]), "o", f"{number}", replace_all=True)
        elif kind == "linked":
            rail.write("linked/one", (text * 1000)[: draw.randrange(LARGE)] + "\n")
        elif kind == "several":
            rail.batch([_call(f"{number}-{name}", f"many/{name}.txt", text) for name in "abcdef"])
        elif kind == "all":
            rail.undo(session="s", resolve=None)
        else:
            rail.undo() if kind == "undo" else rail.redo()
        yield kind


def _call(call_id: str, path: str, content: str) -> ToolCall:
    args = {"path": path, "content": content}
    return ToolCall(tool_call_id=call_id, name="write", args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def opened(workspace: Path, state: Path) -> Handrail:
    """The session that is played in."""
    return Handrail(workspace, mode="full", session="s", state_dir=state, settings=Settings())


def main() -> None:
    """Arguments: workspace, state folder, seed. A line says that one more step is over."""
    workspace, state, seed = sys.argv[1:]
    rail = opened(Path(workspace), Path(state))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in play(rail, seed):
        sys.stdout.write("over\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
