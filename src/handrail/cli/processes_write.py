"""processes write: a person's words to a program."""

import sys
from argparse import Namespace

from handrail.cli.exits import CommandFailed
from handrail.cli.process_places import act, resolve_process
from handrail.protocol.records import ProcessRecord
from handrail.runtime.background import BackgroundWork


def run(options: Namespace) -> int:
    """Writes a line, or what stdin has. What it was is not written down: it may be a password."""
    if options.text is None and not options.eof:
        raise CommandFailed(
            "name what to write, - to read it from stdin, or --eof to end the input. Nothing was written."
        )
    data = _data(options.text)
    place = resolve_process(options)

    def write(_: BackgroundWork) -> ProcessRecord:
        place.process.write(data, eof=options.eof)
        return place.process.record()

    said = f"wrote {len(data):,} bytes{' and the end of its input' if options.eof else ''} to"
    return act(options, place, said, write)


def _data(text: str | None) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read() if sys.stdin is not None else b""
    return b"" if text is None else f"{text}\n".encode("utf-8", "surrogateescape")
