"""policy modes: the table of what each mode says where no rule does."""

from argparse import Namespace

from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, note, table
from handrail.policy.modes import TABLE
from handrail.protocol.decision import MODES
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Prints the one table there is."""
    if options.json:
        answer_json(encode({"schema": "handrail.policy/1", "modes": MODES, "table": TABLE}))
        return OK
    answer(table([("", *MODES), *((subject, *(cells[mode] for mode in MODES)) for subject, cells in TABLE.items())]))
    note("undoable: allow where undo covers it, confirm elsewhere")
    note('outside: with paths.outside = "ask" in the user file a file tool asks; in plan only to read')
    return OK
