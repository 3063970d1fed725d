"""handrail's own edit, as what is scored."""

import contextlib
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from bench.edit.case import Case
from bench.edit.score import Editor, Said
from handrail import Handrail
from handrail.settings import Settings


class Workshop(NamedTuple):
    """An editor and the folder that its files must be in."""

    editor: Editor
    folder: Path


@contextlib.contextmanager
def workshop() -> Generator[Workshop]:
    """A session over a temporary workspace."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        with Handrail(workspace, mode="full", state_dir=Path(folder, "state"), settings=Settings()) as rail:

            def edit(path: Path, case: Case) -> Said:
                texts = {"oldText": case.old, "newText": case.new}
                result = rail.call("edit", {"path": path.name, **texts, "replaceAll": case.replace_all})
                return Said(result.ok, result.content)

            yield Workshop(edit, workspace)
