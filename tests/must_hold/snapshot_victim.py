"""Runs commands without a layer, one after the other, until it is killed."""

import itertools
import random
import sys

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Sandbox

COMMANDS = (
    "for n in $(seq 30); do echo {0} > f$n; done",
    "echo {0} > a; sleep 0.05; echo {0} > b; sleep 0.05; rm -f c; mkdir -p d; echo {0} > d/e",
    "rm -rf d f1 f2; echo {0} >> a; sleep 0.05",
    "chmod 600 a; ln -sf b link{0}; sleep 0.02; mv b c",
)


def main() -> None:
    """Arguments: workspace, state folder, seed. A line says that a call begins."""
    workspace, state, seed = sys.argv[1:]
    draw = random.Random(seed)
    rail = Handrail(workspace, mode="full", state_dir=state, settings=Settings(sandbox=Sandbox(tier=2)))
    for number in itertools.count():
        sys.stdout.write("calling\n")
        sys.stdout.flush()
        rail.exec(draw.choice(COMMANDS).format(number))


if __name__ == "__main__":
    main()
