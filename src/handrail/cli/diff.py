"""diff: what a change set did to files."""

from argparse import Namespace

from handrail.cli.changes import opened
from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Prints the differences."""
    with opened(options) as rail:
        text = rail.diff(options.number)
    if options.json:
        answer_json(encode({"schema": "handrail.diff/1", "number": options.number, "diff": text}))
    else:
        answer(text)
    return OK
