"""processes log: what one has printed."""

import sys
import time
from argparse import Namespace
from collections.abc import Iterator

from handrail.cli.exits import OK, USAGE, CommandFailed
from handrail.cli.files import silence
from handrail.cli.output import print_note, print_out
from handrail.cli.process_places import resolve_process
from handrail.process.output import Cleaner
from handrail.process.sessions.sessions import ProcessSession
from handrail.tools.process import describe_dropped_log, describe_process

_BLOCK_BYTES = 1 << 18
_PAUSE_SECONDS = 0.1


def run(options: Namespace) -> int:
    """Prints the log; with --follow, what comes, until it has ended."""
    if options.raw and sys.stdout is not None and sys.stdout.isatty():
        raise CommandFailed("--raw would let the program steer this terminal; send it to a file or a pipe", USAGE)
    process = resolve_process(options).process
    record = process.record()
    if record.dropped:
        print_note(describe_dropped_log(record))
    pieces = _followed(process) if options.follow else process.log.kept()
    if options.raw:
        _print_raw(pieces)
    else:
        _print(pieces)
    print_note(f"{process.id}: {describe_process(process.record())}")
    return OK


def _followed(process: ProcessSession) -> Iterator[bytes]:
    """What there is, and what comes until it has ended."""
    position = 0
    while True:
        ended = process.wait(0)
        start, data = process.log.read_from(position, _BLOCK_BYTES)
        position = start + len(data)
        if data:
            yield data
        elif ended:
            return
        else:
            time.sleep(_PAUSE_SECONDS)


def _print(pieces: Iterator[bytes]) -> None:
    cleaner = Cleaner()
    for piece in pieces:
        if text := cleaner.feed(piece):
            print_out(text)
    if text := cleaner.end():
        print_out(text)


def _print_raw(pieces: Iterator[bytes]) -> None:
    try:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        silence(sys.stdout)
