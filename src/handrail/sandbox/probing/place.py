"""Where something can be tried out as in the state folder, without leaving a trace in it."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def place_to_try(state: str) -> Generator[str | None]:
    """A folder on the disk of the state folder, which is not changed by looking; None where none can be made."""
    around = state
    while not os.path.isdir(around) and around != os.path.dirname(around):
        around = os.path.dirname(around)
    try:
        folder = tempfile.mkdtemp(prefix=".handrail-probe-", dir=around)
    except OSError:
        yield None
        return
    try:
        yield os.path.realpath(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
