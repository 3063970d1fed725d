"""audit verify: whether the audit is whole."""

from argparse import Namespace

from handrail.cli.context import open_state_folder
from handrail.cli.exits import FAILED, INFRASTRUCTURE, OK
from handrail.cli.output import print_json, print_note, print_out, warn
from handrail.protocol.errors import StoreError
from handrail.protocol.wire import encode
from handrail.runtime.recovery import restore_audit
from handrail.runtime.registry import build_tool_set
from handrail.settings import Settings


def run(options: Namespace) -> int:
    """Restores what a crash left out, then checks every record."""
    state = open_state_folder()
    try:
        restored = restore_audit(state, build_tool_set(Settings()))
    except StoreError as error:  # on a read-only state, for example: what there is can be checked all the same
        warn(f"warning: records that a crash left out were not restored: {error}")
        restored = 0
    found = state.verify_twice()
    if options.json:
        body = {"schema": "handrail.audit/1", "intact": found.intact, "count": found.records, "head": found.head}
        print_json(encode({**body, "problems": found.problems, "unread": found.unread, "restored": restored}))
    else:
        if restored:
            print_note(f"{_counted(restored)} restored after a crash")
        print_out("".join(f"{problem}\n" for problem in found.problems) or f"{_counted(found.records)} intact\n")
        for text in found.unread:
            warn(f"warning: {text}")
    return FAILED if found.problems else INFRASTRUCTURE if found.unread else OK


def _counted(number: int) -> str:
    return f"{number:,} record" if number == 1 else f"{number:,} records"
