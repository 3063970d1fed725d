"""The program that runs a command at the tiers without namespaces: `python -I -S main.py PLAN`.

PLAN is the number of a descriptor that the plan is read from. This file only finds the rest of the package, without
what `import handrail` brings along: that takes longer than everything else here together.
"""

import os
import sys


def main() -> int:
    """Runs the plan behind the descriptor that the first argument names; the exit code is the command's."""
    package = type(sys)("handrail")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    sys.modules["handrail"] = package
    from handrail.sandbox.supervisor.program import run  # noqa: PLC0415  it can be found only now

    return run(int(sys.argv[1]))


if __name__ == "__main__":
    os._exit(main())  # there is nothing to tidy up any more, and the interpreter takes its time
