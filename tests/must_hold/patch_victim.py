"""Applies patches of many files by a plan that its seed makes, and says how far it is, until it is killed."""

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools

STEPS = 40
SETTINGS = Settings(tools=Tools(enable=("apply_patch", "multi_edit", "delete")))


def prepare(workspace: Path) -> None:
    """The tree that every play begins with."""
    for number in range(8):
        (workspace / f"{number}.txt").write_text(f"line\n{number}\n" * 50)
    (workspace / "linked").mkdir()
    (workspace / "linked" / "one").write_text("old\n" * 50_000)
    os.link(workspace / "linked" / "one", workspace / "linked" / "other")


def play(rail: Handrail, workspace: Path, seed: str) -> Iterator[None]:
    """One patch after another, the same for every run of a seed."""
    draw = random.Random(seed)
    for number in range(STEPS):
        if draw.random() < 0.2:
            rail.undo()
            for path in (*workspace.rglob("*.txt"), workspace / "linked" / "one"):
                rail.read(str(path))
        else:
            result = rail.apply_patch(_patch(workspace, draw, number))
            assert result.error is None, result.error.message
        yield


def _patch(workspace: Path, draw: random.Random, number: int) -> str:
    """Something for most of the files that are there, and some new ones."""
    files = sorted(str(path.relative_to(workspace)) for path in workspace.rglob("*.txt"))
    lines = ["*** Begin Patch"]
    for path in files:
        what = draw.choice(["update", "update", "move", "delete", "leave"])
        first = (workspace / path).read_text().split("\n")[0]
        change = [f"-{first}", f"+{number} {path}", f" {(workspace / path).read_text().split(chr(10))[1]}"]
        if what == "delete":
            lines += [f"*** Delete File: {path}"]
        elif what != "leave":
            target = [f"*** Move to: {number}/{draw.randrange(10**9)}.txt"] if what == "move" else []
            lines += [f"*** Update File: {path}", *target, "@@ -1,2 +1,2 @@", *change]
    for each in range(draw.randrange(1, 5)):
        lines += [f"*** Add File: new-{number}/{each}.txt", *[f"+{number} {each}"] * draw.randrange(2, 2_000)]
    if draw.random() < 0.5:
        old = (workspace / "linked" / "one").read_text().split("\n")[0]
        lines += ["*** Update File: linked/one", "@@ -1 +1 @@", f"-{old}", *[f"+{number}"] * draw.randrange(1, 9_000)]
    return "\n".join([*lines, "*** End Patch"])


def opened(workspace: Path, state: Path) -> Handrail:
    """The session that is played in."""
    return Handrail(workspace, mode="full", session="s", state_dir=state, settings=SETTINGS)


def main() -> None:
    """Arguments: workspace, state folder, seed. A line says that one more patch is over."""
    workspace, state, seed = sys.argv[1:]
    rail = opened(Path(workspace), Path(state))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in play(rail, Path(workspace), seed):
        sys.stdout.write("over\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
