"""Whatever a script does: what the lister finds is the difference between the tree before and the tree that it saw."""

import hashlib
import json
import os
import random
import shutil
import stat

import pytest
from tests.changes.support import As, World

from handrail.changes.model import OverlayChanges
from handrail.protocol.changes import State

NAMES = ("a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "f", "f/a")
DO = (
    "echo {n} >{x}", "echo {n} >>{x}", ": >{x}", "cp -r {x} {y}", "mv -T {x} {y}", "mv {x} {y}", "rm -rf {x}",
    "mkdir -p {x}", "ln -sfn {y} {x}", "ln -f {x} {y}", "chmod {m} {x}", "touch {x}", "truncate -s {n}k {x}",
    "rm -rf {x}; mkdir {x}", "rm -rf {x}; echo {n} >{x}", "cat {x} >{y}", "head -c {n}k /dev/urandom >{x}",
)  # fmt: skip
LOOK = """
import hashlib, json, os, stat, sys
found = {}
for folder, folders, files in os.walk(sys.argv[1]):
    for name in folders + files:
        path = os.path.join(folder, name)
        status = os.lstat(path)
        kind = stat.S_IFMT(status.st_mode)
        data = b""
        if kind == stat.S_IFLNK:
            data = os.readlink(path).encode()
        if kind == stat.S_IFREG:
            data = open(path, "rb").read()
        mode = None if kind == stat.S_IFLNK else status.st_mode & 0o7777
        found[os.path.relpath(path, sys.argv[1])] = [kind, mode, hashlib.sha256(data).hexdigest(), len(data)]
print(json.dumps(found))
"""
DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}
PYTHON = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin")  # one that every user may run


def script_of(chance: random.Random, steps: int) -> str:
    """Steps of which some fail, as they do in scripts."""
    lines = [
        chance.choice(DO).format(
            x=chance.choice(NAMES),
            y=chance.choice(NAMES),
            n=chance.randrange(1, 400),
            m=chance.choice(["755", "644", "700"]),
        )
        for _ in range(steps)
    ]
    return "\n".join(f"{{ {line}; }} 2>/dev/null || true" for line in lines)


def state_of(entry: list | None) -> State | None:
    if entry is None:
        return None
    kind, mode, digest, size = entry
    if kind == stat.S_IFDIR:
        return State(kind="folder", mode=mode)
    if kind == stat.S_IFLNK:
        return State(kind="link", hash=digest, size=size)
    return State(kind="file", hash=digest, size=size, mode=mode)


def difference(world: World, examined: OverlayChanges) -> tuple[dict, dict]:
    """The plain difference of the two trees that were looked at, and what the lister says."""
    before, after = (json.loads((world.place / name).read_text()) for name in ("before", "after"))
    plain = {
        path: (state_of(before.get(path)), state_of(after.get(path)))
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
    }
    found = {os.fsdecode(step.path): (step.before, step.after) for step in examined.steps}
    assert len(found) == len(examined.steps)
    written = zip(examined.steps, examined.manners, strict=True)
    through = {_number(world, os.fsdecode(step.path)): step.after for step, manner in written if manner.in_place}
    # What is written through one name of a file changes under its others too, which root's overlays show; and they show
    # what was written under a name that is gone, which is said not to be kept.
    lost = "several names" in "".join(examined.unkept)
    shared = {path for path in plain.keys() - found.keys() if lost or _number(world, path) in through}
    # Other overlays do not show it, and the lister says it all the same: a commit changes the other names too.
    seen = {_number(world, path) for path in found.keys() & plain.keys()} & through.keys()
    said = {
        path
        for path in found.keys() - plain.keys()
        if (number := _number(world, path)) in seen and found[path][1] == through[number]
    }
    return (
        {path: states for path, states in plain.items() if path not in shared},
        {path: states for path, states in found.items() if path not in said},
    )


def _number(world: World, path: str) -> int:
    place = world.root / path
    return place.lstat().st_ino if os.path.lexists(place) else -1


def looking(world: World, name: str) -> str:
    (world.place / "look.py").write_text(LOOK)
    return f"{PYTHON} {world.place}/look.py {world.root} >{world.place}/{name}"


@pytest.mark.parametrize("seed", range(60 if DEEP else 6))
def test_the_lister_agrees_with_a_plain_comparison(user: As, seed: int) -> None:
    def work(world: World) -> tuple[dict, dict, str]:
        chance = random.Random(seed)
        world.sh(script_of(chance, 12))
        world.sh(looking(world, "before"))
        script = script_of(chance, 14)
        examined = world.examine(f"{script}\n{looking(world, 'after')}")
        assert not examined.outdated, script
        return *difference(world, examined), script

    plain, found, script = user(work)
    assert found == plain, script


@pytest.mark.parametrize("seed", range(30 if DEEP else 3))
def test_it_does_so_over_earlier_layers(user: As, seed: int) -> None:
    def work(world: World) -> tuple[dict, dict, str]:
        chance = random.Random(seed + 1000)
        world.sh(script_of(chance, 12))
        first, second, third = (script_of(chance, 8) for _ in range(3))
        one = world.layer(first)
        two = world.layer(f"{second}\n{looking(world, 'before')}", below=(one,))
        examined = world.examine(f"{third}\n{looking(world, 'after')}", below=(two, one))
        return *difference(world, examined), third

    plain, found, script = user(work)
    assert found == plain, script


def test_the_comparison_would_see_a_difference() -> None:
    assert state_of([stat.S_IFREG, 0o644, hashlib.sha256(b"a").hexdigest(), 1]) != state_of(None)
