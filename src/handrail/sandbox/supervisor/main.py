"""The entry point of the supervisor: `python -I -S main.py PLAN`. PLAN is the descriptor of a supervisor plan."""

import os
import sys


def main() -> int:
    package = type(sys)("handrail")  # without the slow imports of handrail/__init__.py
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    sys.modules["handrail"] = package
    from handrail.sandbox.supervisor.program import run  # noqa: PLC0415  it can be found only now

    return run(int(sys.argv[1]))


if __name__ == "__main__":
    os._exit(main())  # skips the slow clean-up of the interpreter
