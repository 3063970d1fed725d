"""What the sample's own tests see: folders for a test, what was printed, other processes."""

import subprocess
import sys
from pathlib import Path

import pytest
from shapes import square


@pytest.mark.parametrize(("side", "area"), [(2, 4), (3, 9)])
def test_a_square(side: int, area: int) -> None:
    assert square(side) == area


def test_a_folder_for_a_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_text("text")
    print((tmp_path / "a").read_text())
    assert capsys.readouterr().out == "text\n"


def test_another_process() -> None:
    assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True).stdout == b"1\n"
