"""audit verify: whether the audit is whole."""

from argparse import Namespace

from handrail.cli.exits import FAILED, OK
from handrail.cli.output import answer, answer_json, note
from handrail.cli.sessions import state_of_here
from handrail.protocol.wire import encode
from handrail.runtime.offering import offered
from handrail.runtime.restoring import restore_audit
from handrail.settings import Settings
from handrail.store.folder import StateFolder
from handrail.store.verify import verify


def run(options: Namespace) -> int:
    """Restores what a crash left out, then checks every record."""
    state = state_of_here()
    restored = restore_audit(state, offered(Settings()))
    count, head, problems = _verified(state)
    if options.json:
        body = {"schema": "handrail.audit/1", "intact": not problems, "count": count, "head": head}
        answer_json(encode({**body, "problems": problems, "restored": restored}))
    else:
        if restored:
            note(f"{_counted(restored)} restored after a crash")
        answer("".join(f"{problem}\n" for problem in problems) or f"{_counted(count)} intact\n")
    return FAILED if problems else OK


def _verified(state: StateFolder) -> tuple[int, str, list[str]]:
    """Length, head and problems. A call that ends this moment has its result before its record: only what is missing
    twice is missing."""
    found = verify(state)
    if found.intact:
        return found.records, found.head, []
    again = verify(state)
    return again.records, again.head, [problem for problem in again.problems if problem in found.problems]


def _counted(number: int) -> str:
    return f"{number:,} record" if number == 1 else f"{number:,} records"
