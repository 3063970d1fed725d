"""Runs a function of handrail in a bare interpreter: `python -I -S bare_interpreter.py MODULE FUNCTION ARGUMENT …`.

It makes the package importable without running `import handrail`, which would load far more.
"""

import os
import sys

_FILE = os.path.abspath(__file__)


def build_bare_command(module: str, function: str, *arguments: str) -> tuple[str, ...]:
    """The command line that runs a function. The function returns the exit code."""
    return (sys.executable, "-I", "-S", _FILE, module, function, *arguments)


def main() -> int:
    package = type(sys)("handrail")
    package.__path__ = [os.path.dirname(os.path.dirname(_FILE))]
    sys.modules["handrail"] = package
    module, function, *arguments = sys.argv[1:]
    __import__(module)
    return getattr(sys.modules[module], function)(*arguments)


if __name__ == "__main__":
    os._exit(main())  # skips the slow clean-up of the interpreter
