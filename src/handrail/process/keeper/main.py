"""The program that keeps a command: `python -I -S main.py PLAN`.

PLAN is the number of a descriptor that the plan is read from. This file only finds the rest of the package, without
what `import handrail` brings along, and leaves whoever started it: it becomes nobody's child, in a session of its own.
"""

import os
import sys


def main() -> None:
    """Keeps what the plan says; comes back twice, as usual after a fork."""
    if os.fork():
        return
    package = type(sys)("handrail")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    sys.modules["handrail"] = package
    from handrail.process.keeper.program import run  # noqa: PLC0415  it can be found only now

    run(int(sys.argv[1]))


if __name__ == "__main__":
    try:
        main()
    finally:
        os._exit(0)  # there is nothing to tidy up any more, and the interpreter takes its time
