"""Steps are applied to the files, from the history or from memory, all or none."""

import os
from pathlib import Path

import pytest

from handrail.changes.apply import apply_steps
from handrail.changes.history import History
from handrail.changes.model import ApplyOptions
from handrail.protocol.changes import State
from handrail.protocol.errors import ToolError
from handrail.store.change_log import Step
from handrail.workspace.file_state import Content
from handrail.workspace.workspace import Workspace

TEMPORARY = ".handrail-s-c"


def a_state(data: bytes, mode: int | None = None) -> State:
    new = Content.from_bytes(data)
    return State(kind="file", hash=new.hash, size=new.size, mode=mode)


def test_bytes_in_memory_are_written_without_being_stored(workspace: Path, house: Workspace, history: History) -> None:
    (workspace / "old").write_bytes(b"old")
    sources = {b"old": b"new", b"folder/made": b"made"}
    steps = [Step(b"old", a_state(b"old"), a_state(b"new")), Step(b"folder/made", None, a_state(b"made"))]
    taken = apply_steps(house, history, steps, temporary=TEMPORARY, options=ApplyOptions(sources=sources))
    assert {step.path for step in taken} == {b"old", b"folder/made"}
    assert (workspace / "old").read_bytes() == b"new"
    assert (workspace / "folder" / "made").read_bytes() == b"made"
    assert not history.blobs.has(a_state(b"new").hash)


@pytest.mark.parametrize("use_staging", [False, True], ids=["from blobs", "from staging"])
def test_a_conflict_rolls_the_other_steps_back(
    workspace: Path, house: Workspace, history: History, use_staging: bool
) -> None:
    for name in ("a", "b"):
        (workspace / name).write_bytes(b"old")
    history.blobs.put(b"old", pack=True)
    before = (workspace / "a").stat().st_ino
    steps = [Step(b"a", a_state(b"old"), a_state(b"new")), Step(b"b", a_state(b"other"), a_state(b"new"))]
    options = ApplyOptions(sources={b"a": b"new", b"b": b"new"}, use_staging=use_staging)
    with pytest.raises(ToolError, match="b") as refused:
        apply_steps(house, history, steps, temporary=TEMPORARY, options=options)
    assert (refused.value.code, "stuck" in refused.value.named_details) == ("CONFLICT", False)
    assert [(workspace / name).read_bytes() for name in ("a", "b")] == [b"old", b"old"]
    assert sorted(os.listdir(workspace)) == ["a", "b"]
    assert ((workspace / "a").stat().st_ino == before) or not use_staging
