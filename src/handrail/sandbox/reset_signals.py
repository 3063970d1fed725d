"""Gives what is started its signals as they are in a new login: `python -I -S fresh_signals.py PROGRAM …`.

What a host ignores or holds back is inherited. Bubblewrap waits for ever where the end of children is ignored, and a
command could not be ended by its own `timeout` or `kill`. Only where it is so does this step come in between."""

import os
import sys

_CHANGED_BY_PYTHON = 1 << 12 | 1 << 24
"""Ignored by the interpreter itself, and set right for whatever it starts: a broken pipe, a file that is too large."""


def wrap_with_fresh_signals(argv: tuple[str, ...]) -> tuple[str, ...]:
    """What to start in the place of a program, in this thread and now."""
    if not sys.executable or not _not_as_new():
        return argv
    return (sys.executable, "-I", "-S", os.path.abspath(__file__), *argv)


def _not_as_new() -> int:
    """The signals that are held back or ignored, as the kernel writes them: a bit for each."""
    with open("/proc/thread-self/status", "rb") as status:
        masks = {line[:6]: int(line.split()[1], 16) for line in status if line.startswith((b"SigBlk", b"SigIgn"))}
    return masks[b"SigBlk"] | masks[b"SigIgn"] & ~_CHANGED_BY_PYTHON


def main() -> None:
    """Sets the signals right and becomes the program that the arguments name."""
    package = type(sys)("handrail")  # without what `import handrail` brings along
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["handrail"] = package
    from handrail.kernel.process import reset_signals  # noqa: PLC0415  it can be found only now

    reset_signals()
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606  what is run was decided by policy, and is confined


if __name__ == "__main__":
    main()
