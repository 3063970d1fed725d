"""Runs commands in layers and takes them back, by a plan, and says how far it is, until it is killed."""

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from handrail import Handrail
from handrail.settings import Settings
from handrail.store.change_log import ChangeLog

STEPS = 12
FILES = 30


def prepare(workspace: Path, seed: str) -> None:
    """The tree that every play begins with, and the scripts of the play."""
    draw = random.Random(seed)
    (workspace / "scripts").mkdir()
    for number in range(STEPS):
        (workspace / "scripts" / f"{number}.sh").write_text(script(draw, number))
    for folder in ("many", "goes/deep", "closed", "linked"):
        (workspace / folder).mkdir(parents=True)
    for number in range(FILES):
        (workspace / "many" / f"{number}.txt").write_text(f"old {number}\n" * (number + 1))
        (workspace / "goes" / "deep" / f"{number}").write_text(f"goes {number}\n")
    (workspace / "closed" / "file").write_text("closed\n")
    (workspace / "linked" / "one").write_text("shared\n" * 1000)
    os.link(workspace / "linked" / "one", workspace / "linked" / "other")
    (workspace / "link").symlink_to("nowhere")
    (workspace / "swap").write_text("a file that becomes a folder\n")


def script(draw: random.Random, number: int) -> str:
    """A command that changes much at once, in many ways."""
    parts = [
        f"for f in many/*; do echo {number} >>$f; done",
        f"rm -r goes; mkdir -p goes/deep; for i in $(seq {FILES}); do echo {number} $i >goes/deep/$i; done",
        f"chmod u+w closed; echo {number} >closed/file; chmod {draw.choice(['555', '755', '511'])} closed",
        f"echo {number} >>linked/one",
        f"ln -sfn target-{number} link",
        "if [ -d swap ]; then rm -r swap; echo file >swap; else rm swap; mkdir swap; echo in >swap/inner; fi",
        f"echo {number} >new-{number}; ln new-{number} also-{number}; chmod {draw.choice(['755', '600'])} new-{number}",
        f"rm -f many/{draw.randrange(FILES)}.txt; mkdir -p made/{number}/empty; chmod 500 made/{number}/empty",
    ]
    return "set -e\n" + "\n".join(draw.sample(parts, draw.randrange(3, len(parts) + 1)))


def play(rail: Handrail, seed: str) -> Iterator[str]:
    """One step after another, the same for every run of a seed; what kind it was."""
    draw = random.Random(seed)
    for number in range(STEPS):
        kind = "run" if number == 0 else draw.choice(["run", "run", "undo", "undo", "redo"])
        if kind == "run":
            result = rail.call("exec", {"command": f"bash scripts/{number}.sh"})
            assert result.ok, result
        else:
            rail.undo() if kind == "undo" else rail.redo()
        yield kind


def opened(workspace: Path, state: Path) -> Handrail:
    """The session that is played in."""
    return Handrail(workspace, mode="full", session="s", state_dir=state, settings=Settings())


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    """Arguments: workspace, state folder, seed. A line says that a change begins, or that one more step is over."""
    workspace, state, seed = sys.argv[1:]
    begin = ChangeLog.begin

    def said(*args, **options):
        number = begin(*args, **options)
        say("begun")
        return number

    ChangeLog.begin = said
    rail = opened(Path(workspace), Path(state))
    say("ready")
    for _ in play(rail, seed):
        say("over")


if __name__ == "__main__":
    main()
