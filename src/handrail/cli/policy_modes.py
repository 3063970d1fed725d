"""policy modes: the table of what each mode says where no rule does."""

from argparse import Namespace

from handrail.cli.exits import OK
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.policy.verdict import TABLE
from handrail.protocol.decisions import MODES
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Prints the one table there is."""
    if options.json:
        print_json(encode({"schema": "handrail.policy/1", "modes": MODES, "table": TABLE}))
        return OK
    print_out(
        render_table([("", *MODES), *((subject, *(cells[mode] for mode in MODES)) for subject, cells in TABLE.items())])
    )
    print_note("undoable: allow where undo covers it, confirm elsewhere")
    print_note('outside: with paths.outside = "ask" in the user file a file tool asks; in plan only to read')
    return OK
