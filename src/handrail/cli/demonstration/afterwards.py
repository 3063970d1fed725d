"""What a person would type after a turn, typed for them."""

from handrail.api import Handrail
from handrail.cli.demonstration.checks import DemoChecks, get_exit_code
from handrail.cli.demonstration.sample import RUN_TESTS
from handrail.cli.exits import OK
from handrail.cli.main import run as run_words
from handrail.cli.output import print_note, write_out
from handrail.protocol.permissions import AnswerKind, PermissionRequest
from handrail.settings import LoadedSettings


def show_afterwards(
    loaded: LoadedSettings, variables: dict[str, str] | None, checks: DemoChecks, edit: int | None
) -> None:
    """The log, a difference, undo, redo, and whether the record is whole. `edit`: which change the edit was."""
    print_note("\nIt is all on the record, and it can all be taken back. What you would type:")
    _type(checks, "log", "--changes")
    _type(checks, "diff", str(edit))
    _type(checks, "undo", "--turn")
    with Handrail(".", session="cli", mode="ask", settings=loaded, variables=variables, on_permission=_yes) as rail:
        checks.check_files(rail, mended=False)
        code = get_exit_code(rail.exec(RUN_TESTS))
        checks.expect("the tests fail again after undo", code == 1)
        print_note(f"The files are as they were; the tests fail again (exit {code}).")
    _type(checks, "redo")
    with Handrail(".", session="cli", mode="ask", settings=loaded, variables=variables) as rail:
        checks.check_files(rail, mended=True)
    _type(checks, "audit", "verify")


def _yes(_: PermissionRequest) -> AnswerKind:
    return "once"


def _type(checks: DemoChecks, *words: str) -> None:
    command = " ".join(("handrail", *words))
    write_out(f"\n$ {command}\n")
    checks.expect(f"{command} works", run_words([*words, "-q"]) == OK)
