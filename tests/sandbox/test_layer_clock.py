"""Before and after a moment, by change times."""

from pathlib import Path

import pytest

from handrail.sandbox.layer.clock import is_since, tick_of

SECOND = 1_000_000_000


def test_what_was_written_just_before_is_before_and_what_is_written_just_after_is_after(tmp_path: Path) -> None:
    folder, before, after = tmp_path / "ours", tmp_path / "before", tmp_path / "after"
    folder.mkdir()
    for number in range(200):
        before.write_text(str(number))
        tick = tick_of(str(folder))
        after.write_text(str(number))
        assert not is_since(before.stat().st_ctime_ns, tick)
        assert is_since(after.stat().st_ctime_ns, tick)


@pytest.mark.parametrize(
    ("change_time", "since"),
    [(7 * SECOND + 4, False), (7 * SECOND + 5, True), (7 * SECOND, True), (6 * SECOND, False), (8 * SECOND, True)],
)
def test_a_file_system_that_counts_in_seconds_may_mean_any_moment_of_one(change_time: int, since: bool) -> None:
    assert is_since(change_time, 7 * SECOND + 5) is since
