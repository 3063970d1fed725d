"""What others change in a repository while a command is at it too is seen, however they go about it."""

from pathlib import Path

from handrail.changes.model import OverlayChanges
from handrail.changes.overlay.commit import list_repository_conflicts
from handrail.store.change_log import Step
from handrail.workspace.workspace import Workspace

OWN = OverlayChanges(started=1, steps=(Step(b".git/index", None, None),))
"""A command that changed the index, in a layer that was made before all files of today."""


def test_what_goes_while_the_repository_is_looked_through_hides_nothing_else(workspace: Path) -> None:
    others = {".git/HEAD", ".git/config", ".git/packed-refs", ".git/ORIG_HEAD"}
    (workspace / ".git").mkdir()
    for path in others:
        (workspace / path).write_text("x")
    with Workspace(str(workspace)) as opened:
        looking = list_repository_conflicts(opened, OWN)
        first = next(looking).decode()
        (workspace / min(others - {first})).unlink()
        assert {path.decode() for path in looking} == others - {first}
