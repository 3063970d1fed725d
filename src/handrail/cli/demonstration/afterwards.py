"""What a person would type after a turn, typed for them."""

from handrail.cli.demonstration.checks import Checks, exit_code
from handrail.cli.demonstration.sample import RUN_TESTS
from handrail.cli.exits import OK
from handrail.cli.main import run as run_words
from handrail.cli.output import note, piece
from handrail.protocol.permission import AnswerKind, PermissionRequest
from handrail.rail import Handrail
from handrail.settings import Loaded


def show_afterwards(loaded: Loaded, variables: dict[str, str] | None, checks: Checks, edit: int | None) -> None:
    """The log, a difference, undo, redo, and whether the record is whole. `edit`: which change the edit was."""
    note("\nIt is all on the record, and it can all be taken back. What you would type:")
    _type(checks, "log", "--changes")
    _type(checks, "diff", str(edit))
    _type(checks, "undo", "--turn")
    with Handrail(".", session="cli", mode="ask", settings=loaded, variables=variables, on_permission=_yes) as rail:
        checks.look_at_files(rail, mended=False)
        code = exit_code(rail.exec(RUN_TESTS))
        checks.expect("the tests fail again after undo", code == 1)
        note(f"The files are as they were; the tests fail again (exit {code}).")
    _type(checks, "redo")
    with Handrail(".", session="cli", mode="ask", settings=loaded, variables=variables) as rail:
        checks.look_at_files(rail, mended=True)
    _type(checks, "audit", "verify")


def _yes(_: PermissionRequest) -> AnswerKind:
    return "once"


def _type(checks: Checks, *words: str) -> None:
    command = " ".join(("handrail", *words))
    piece(f"\n$ {command}\n")
    checks.expect(f"{command} works", run_words([*words, "-q"]) == OK)
