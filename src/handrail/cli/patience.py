"""Says what it waits for, to a person at a terminal, where that takes longer than they would wait in silence."""

import sys
import threading
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager

from handrail.cli.output import print_note
from handrail.protocol.text import to_one_line, truncate

_PATIENCE_SECONDS = 1.0


@contextmanager
def print_slow_notice(options: Namespace, what: str) -> Generator[None]:
    """While this is open: one line, after a second."""
    if options.json or options.quiet or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    told = f"waiting for {truncate(to_one_line(what), 100)} … Ctrl-C ends it"
    timer = threading.Timer(_PATIENCE_SECONDS, print_note, (told,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # else its line could come into the middle of a question
