"""A process that forks: the session stays with the parent."""

import os
from collections.abc import Callable
from pathlib import Path

from handrail import Handrail, UsageError
from handrail.state import StoredState
from handrail.store.runner import list_dead_runners
from handrail.store.state_dir import StateFolder

Open = Callable[..., Handrail]


def in_child(work: Callable[[], bool]) -> bool:
    """Whether the work came to True in a forked child."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_a_child_is_refused_and_breaks_nothing_of_its_parents(rail: Open, tmp_path: Path) -> None:
    one = rail()
    one.ls(".")

    def call_and_close() -> bool:
        try:
            one.ls(".")
        except UsageError:
            one.close()
            return True
        return False

    assert in_child(call_and_close)
    assert one.ls(".").ok
    one.close()
    checked = StoredState(str(tmp_path / "state")).verify()
    assert (checked.problems, checked.records) == ((), 2)


def test_a_child_that_lives_on_does_not_make_a_dead_parent_seem_alive(tmp_path: Path, workspace: Path) -> None:
    """The parent dies in the middle; its child stays. Whoever opens the session next sees a dead runner."""
    ready, done = os.pipe(), os.pipe()
    parent = os.fork()
    if parent == 0:
        kept = Handrail(workspace, session="s", state_dir=tmp_path / "state")
        if os.fork() == 0:
            os.write(ready[1], b"x")
            os.close(done[1])
            os.read(done[0], 1)  # until the test is over
        assert kept.session_id == "s"
        os._exit(0)
    os.waitpid(parent, 0)
    assert os.read(ready[0], 1) == b"x"
    (folder,) = StateFolder(str(tmp_path / "state")).sessions()
    assert len(list_dead_runners(folder)) == 1
    for descriptor in (*ready, *done):
        os.close(descriptor)


def test_a_child_may_open_a_session_of_its_own(rail: Open) -> None:
    one = rail(session="shared")
    assert in_child(lambda: rail(session="shared").ls(".").ok)
    assert one.ls(".").ok
