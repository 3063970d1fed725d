"""diff: what a change set did to files, or those of a turn."""

from argparse import Namespace

from handrail.cli.changes import open_cli_session, print_refusal
from handrail.cli.coverage import list_change_gaps
from handrail.cli.exits import OK
from handrail.cli.output import print_json, print_note, print_out, warn
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Prints the differences."""
    try:
        with open_cli_session(options) as rail:
            if options.turn:
                numbers, text = rail.turn_diff()
            else:
                number, text = rail.numbered_diff(options.number)
                numbers = (number,)
            open_ends = list_change_gaps(rail, numbers)
    except ToolError as error:
        return print_refusal(options, "diff", error)
    if options.json:
        which = {"numbers": numbers} if options.turn else {"number": numbers[0]}
        print_json(encode({"schema": "handrail.diff/1", **which, "diff": text, "notCovered": open_ends}))
        return OK
    print_out(text)
    for line in open_ends:
        warn(line)
    if any(line.startswith("… ") for line in text.splitlines()):
        print_note("the diff is cut where it says so: it is too long to be kept whole")
    return OK
