"""redo: takes the last undo back."""

from argparse import Namespace

from handrail.cli.changes import opened
from handrail.cli.undo import resolve, show


def run(options: Namespace) -> int:
    """Brings back what the last undo took."""
    with opened(options) as rail:
        result = rail.redo(resolve=resolve(options))
    return show(options, "redo", result, "take it back: handrail undo")
