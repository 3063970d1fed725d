"""Descriptors that a program can be handed under their own numbers.

A host that closed its standard streams gets those numbers for whatever it opens next; what it starts has its own
streams there.
"""

import fcntl
import os

_FIRST = 3


def move_above_standard(descriptor: int) -> int:
    """The descriptor, moved where its number is a standard stream's; closed where there is no room to move it to."""
    if descriptor >= _FIRST:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST)
    finally:
        os.close(descriptor)


def open_pipe_above_standard() -> tuple[int, int]:
    """A new pipe: the end to read from, the end to write to."""
    reading, writing = os.pipe()
    moved: list[int] = []
    try:
        moved.append(move_above_standard(reading))
        moved.append(move_above_standard(writing))
    except OSError:
        os.close(moved[0] if moved else writing)
        raise
    return moved[0], moved[1]
