"""The locks of a session: a runner is alive until it ends, and a lease has one holder at a time."""

import resource
from pathlib import Path

import pytest

from handrail.protocol.errors import UsageError
from handrail.store.runner import Lease, Runner, is_dead, list_dead_runners, remove_runner


def test_a_runner_is_alive_until_it_ends(tmp_path: Path) -> None:
    one, other = Runner(str(tmp_path)), Runner(str(tmp_path))
    assert one.id != other.id
    assert list_dead_runners(str(tmp_path)) == []
    one.close()
    assert list_dead_runners(str(tmp_path)) == []
    other.release()
    assert list_dead_runners(str(tmp_path)) == [other.id]
    remove_runner(str(tmp_path), other.id)
    remove_runner(str(tmp_path), other.id)
    assert list_dead_runners(str(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_runner_is_never_seen_unlocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks between the making of the file and its lock must not take it for dead."""
    import fcntl

    real, seen = fcntl.flock, []

    def look_first(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        seen.append(list_dead_runners(str(tmp_path)))
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", look_first)
    Runner(str(tmp_path)).close()
    assert seen == [[]]


def test_two_that_look_at_a_dead_runner_at_the_same_moment_both_find_it_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    runner = Runner(str(tmp_path))
    runner.release()
    real, seen = fcntl.flock, []

    def look_meanwhile(descriptor: int, operation: int) -> None:
        real(descriptor, operation)
        monkeypatch.setattr(fcntl, "flock", real)
        seen.append(is_dead(str(tmp_path), runner.id))

    monkeypatch.setattr(fcntl, "flock", look_meanwhile)
    assert (is_dead(str(tmp_path), runner.id), seen) == (True, [True])


def test_closing_a_released_runner_leaves_its_file_for_recovery(tmp_path: Path) -> None:
    runner = Runner(str(tmp_path))
    runner.release()
    runner.close()
    assert list_dead_runners(str(tmp_path)) == [runner.id]


def test_a_disk_that_is_full_neither_keeps_anybody_from_it_nor_holds_it(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with Lease(str(tmp_path), "task"), pytest.raises(UsageError, match="in use in another process"):
            Lease(str(tmp_path), "task").__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with Lease(str(tmp_path), "task"):
        pass
