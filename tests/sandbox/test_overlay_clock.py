"""Before and after a moment, by change times."""

import os
from pathlib import Path

import pytest
from tests.sandbox.overlays import WHY_NOT, LayeredWorld

from handrail.sandbox.overlay.overlay import is_changed_since, wait_for_fresh_ctime
from handrail.sandbox.overlay.pool import forget

SECOND = 1_000_000_000


def test_what_was_written_just_before_is_before_and_what_is_written_just_after_is_after(tmp_path: Path) -> None:
    folder, before, after = tmp_path / "ours", tmp_path / "before", tmp_path / "after"
    folder.mkdir()
    for number in range(200):
        before.write_text(str(number))
        tick = wait_for_fresh_ctime(str(folder))
        after.write_text(str(number))
        assert not is_changed_since(before.stat().st_ctime_ns, tick)
        assert is_changed_since(after.stat().st_ctime_ns, tick)


@pytest.mark.parametrize(
    ("change_time", "since"),
    [(7 * SECOND + 4, False), (7 * SECOND + 5, True), (7 * SECOND, True), (6 * SECOND, False), (8 * SECOND, True)],
)
def test_a_file_system_that_counts_in_seconds_may_mean_any_moment_of_one(change_time: int, since: bool) -> None:
    assert is_changed_since(change_time, 7 * SECOND + 5) is since


@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_where_change_times_stand_still_there_is_no_overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = LayeredWorld(tmp_path)
    real = os.chmod
    monkeypatch.setattr(os, "chmod", lambda path, mode, **at: None if mode == 0o700 else real(path, mode, **at))
    monkeypatch.setattr("handrail.sandbox.overlay.overlay._MAX_PAUSES", 3)
    forget()
    why = world.sandbox.find_overlay_obstacle(world.roots)
    forget()
    assert why is not None
    assert "the file system does not renew change times" in why
