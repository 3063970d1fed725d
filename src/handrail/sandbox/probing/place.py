"""Where something can be tried out as in the state folder, without leaving a trace in it."""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from handrail.store.state_dir import make_temporary_folder


@contextmanager
def make_probe_folder(state: str) -> Generator[str | None]:
    """A folder on the disk of the state folder, which is not changed by looking; None where none can be made."""
    around = state
    while not os.path.isdir(around) and around != os.path.dirname(around):
        around = os.path.dirname(around)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(make_temporary_folder(".handrail-probe-", around))
        except OSError:
            folder = None
        yield folder
