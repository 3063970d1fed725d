"""A program that starts another one with default signals: `python -I -S reset_signals.py PROGRAM …`.

Ignored and blocked signals are inherited from the host. bubblewrap would wait forever if SIGCHLD is ignored, and
`timeout` or `kill` could not end a command.
"""

import os
import sys


def main() -> None:
    package = type(sys)("handrail")  # without the imports of handrail/__init__.py
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["handrail"] = package
    from handrail.kernel.process import reset_signals  # noqa: PLC0415  it can be found only now

    reset_signals()
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606  policy decided on the program, and the sandbox confines it


if __name__ == "__main__":
    main()
