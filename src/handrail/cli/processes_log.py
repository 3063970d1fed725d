"""processes log: what one has printed."""

import sys
import time
from argparse import Namespace
from collections.abc import Iterator

from handrail.cli.exits import OK, USAGE, Stop
from handrail.cli.files import silence
from handrail.cli.output import answer, note
from handrail.cli.process_places import place_of
from handrail.process.cleaning import Cleaner
from handrail.process.sessions.session import ProcessSession
from handrail.tools.process_words import how_it_is, what_is_missing

_BLOCK = 1 << 18
_PAUSE = 0.1


def run(options: Namespace) -> int:
    """Prints the log; with --follow, what comes, until it has ended."""
    if options.raw and sys.stdout is not None and sys.stdout.isatty():
        raise Stop("--raw would let the program steer this terminal; send it to a file or a pipe", USAGE)
    process = place_of(options).process
    record = process.record()
    if record.dropped:
        note(what_is_missing(record))
    pieces = _followed(process) if options.follow else process.log.kept()
    if options.raw:
        _print_raw(pieces)
    else:
        _print(pieces)
    note(f"{process.id}: {how_it_is(process.record())}")
    return OK


def _followed(process: ProcessSession) -> Iterator[bytes]:
    """What there is, and what comes until it has ended."""
    position = 0
    while True:
        ended = process.wait(0)
        start, data = process.log.read_from(position, _BLOCK)
        position = start + len(data)
        if data:
            yield data
        elif ended:
            return
        else:
            time.sleep(_PAUSE)


def _print(pieces: Iterator[bytes]) -> None:
    cleaner = Cleaner()
    for piece in pieces:
        if text := cleaner.feed(piece):
            answer(text)
    if text := cleaner.end():
        answer(text)


def _print_raw(pieces: Iterator[bytes]) -> None:
    try:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        silence(sys.stdout)
