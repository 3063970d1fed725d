"""redo: undoes the last undo."""

from argparse import Namespace

from handrail.cli.changes import open_cli_session
from handrail.cli.undo import choose_conflict_action, show


def run(options: Namespace) -> int:
    """Makes the changes again that the last undo took away."""
    with open_cli_session(options) as rail:
        result = rail.redo(resolve=choose_conflict_action(options))
    return show(options, "redo", result, "take it back: handrail undo")
