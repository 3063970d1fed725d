"""The keeper's entry point: `python -I -S main.py PLAN`, where PLAN is the descriptor of the plan.

It makes the package importable without running `import handrail`, which would load far more.
"""

import os
import sys


def main() -> None:
    """Run the keeper in a child. The caller waits only for the parent, so the keeper has no parent of ours."""
    if os.fork():
        return
    package = type(sys)("handrail")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    sys.modules["handrail"] = package
    from handrail.process.keeper.program import run  # noqa: PLC0415  importable only now

    run(int(sys.argv[1]))


if __name__ == "__main__":
    try:
        main()
    finally:
        os._exit(0)  # skip the interpreter's slow shutdown
