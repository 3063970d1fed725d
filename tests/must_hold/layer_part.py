"""Runs generated scripts as whoever it is started as, and prints a line of JSON for each.

Arguments: a folder that is this user's, how every script is to be run, and seeds, as `FIRST COUNT`.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

from layer_scripts.start import make_tree
from layer_scripts.tree_state import Start, differences, repositories_of, tree_of
from layer_scripts.ways import MODES, SCRIPT, Ground, empty
from layer_scripts.writing import script_for


def main() -> None:
    place, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    ground = Ground(place)
    try:
        if reason := ground.why_no_layer():
            print(json.dumps({"reason": reason}))
            return
        for seed in range(first, first + count):
            print(json.dumps({"seed": seed, **tried(ground, place, seed)}), flush=True)
    finally:
        ground.close()


def tried(ground: Ground, place: Path, seed: int) -> dict[str, object]:
    """Runs the script of a seed in both ways; in which way the second, and what is wrong."""
    start = place / "start"
    start.mkdir(exist_ok=True)
    empty(start)
    scene = make_tree(start, random.Random(seed), precise=os.geteuid() == 0)
    script = script_for(scene)
    (start / SCRIPT).write_text(script)
    way = ("layer", "sealed", "layer", "sealed", MODES[seed // 5 % 3])[seed % 5]
    try:
        return {"way": way, "wrong": compared(ground, start, way), "script": script}
    except Exception as error:  # one script must not hide the others
        return {"way": way, "wrong": [f"{type(error).__name__}: {error}"], "script": script}


def compared(ground: Ground, start: Path, way: str) -> list[str]:
    begun = Start(tree_of(start), time.time_ns())
    ground.fill(start)
    ground.directly()
    expected, known = tree_of(ground.workspace), repositories_of(ground.workspace)
    ground.fill(start)
    changed = ground.called(way) if way in MODES else ground.layered(sealed=way == "sealed")
    wrong = differences(expected, tree_of(ground.workspace), begun)
    wrong += told_by_git(known, repositories_of(ground.workspace))
    if changed:
        ground.undo(way if way in MODES else "full")
    return wrong + [f"after undo: {told}" for told in differences(begun.tree, tree_of(ground.workspace))]


def told_by_git(expected: dict[str, tuple[str, str]], found: dict[str, tuple[str, str]]) -> list[str]:
    """Objects are whole, unless the script itself broke the repository; and everything is as git told it before."""
    return [
        f"git in {place}: {found.get(place)!r:.300} and not {told!r:.300}"
        for place, told in expected.items()
        if found.get(place) != told
    ]


if __name__ == "__main__":
    main()
