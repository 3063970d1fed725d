"""diff: what a change set did to files, or those of a turn."""

from argparse import Namespace

from handrail.cli.changes import opened, refused
from handrail.cli.coverage import of_changes
from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, note, warn
from handrail.protocol.error import ToolError
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Prints the differences."""
    try:
        with opened(options) as rail:
            if options.turn:
                numbers, text = rail.turn_diff()
            else:
                number, text = rail.numbered_diff(options.number)
                numbers = (number,)
            open_ends = of_changes(rail, numbers)
    except ToolError as error:
        return refused(options, "diff", error)
    if options.json:
        which = {"numbers": numbers} if options.turn else {"number": numbers[0]}
        answer_json(encode({"schema": "handrail.diff/1", **which, "diff": text, "notCovered": open_ends}))
        return OK
    answer(text)
    for line in open_ends:
        warn(line)
    if any(line.startswith("… ") for line in text.splitlines()):
        note("the diff is cut where it says so: it is too long to be kept whole")
    return OK
