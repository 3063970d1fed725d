"""The benchmark of the console where there is no Chromium."""

from pathlib import Path

import pytest
from bench.measure import table

from bench import web


def test_without_chromium_the_report_says_what_was_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    size, *others = web.rows()
    assert size.value is not None
    assert {row.verdict for row in others} == {"not measured"}
    assert [row.name for row in others if row.limit is not None] == ["first paint", "scrolling: time of a frame, mean"]
    assert table(others).count("not measured: needs Chromium (Debian: apt-get install chromium)") == len(others)
