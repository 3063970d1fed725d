"""Runs commands and is interrupted: once by its parent, or many times by its own clock at drawn moments."""

import os
import random
import signal
import subprocess
import sys
from types import FrameType

import process_launches as launches

from handrail.process.run import run_launch
from handrail.sandbox.profile import ResourceLimits

MARK = os.environ["MARK"]


def run(make: launches.MakeLaunch, text: str) -> None:
    run_launch(make(text), limits=ResourceLimits(), cancelled=lambda: False, on_output=tell, spill_folder="/")


def tell(data: bytes) -> None:
    if b"ready" in data:
        print("ready", flush=True)


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def once(make: launches.MakeLaunch) -> None:
    try:
        run(make, f"trap '' INT TERM; (sleep {MARK} &) ; echo ready; sleep {MARK}; :")
    except KeyboardInterrupt:
        print("interrupted,", "left:", launches.left_of(make, MARK))


def many_times(make: launches.MakeLaunch, count: int) -> None:
    signal.signal(signal.SIGALRM, interrupt)
    draw = random.Random(6)
    for _ in range(count):
        launch = make(f"sleep {MARK} & sleep {MARK}")
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 0.015))
            run_launch(launch, limits=ResourceLimits(), cancelled=lambda: False, spill_folder="/")
        except KeyboardInterrupt:
            left = launches.left_of(make, MARK)
            if left:
                print("left after one:", left)
        finally:
            launch.close()
    subprocess.Popen(["/bin/true"]).wait()  # makes the module ask about children that nobody holds
    print("left:", [*launches.left_of(make, MARK), *launches.own_children()])


if __name__ == "__main__":
    kind = launches.confined if sys.argv[1] == "confined" else launches.supervised
    once(kind) if sys.argv[2] == "once" else many_times(kind, int(sys.argv[2]))
